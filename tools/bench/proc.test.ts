import { expect, test } from 'vitest';
import { readDropTable } from './proc.ts';

test('drops are read by the inode of the socket', () => {
  const text = `   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
   10: 0100007F:AB2D 0100007F:6979 01 00000000:00000000 00:00000000 00000000     0        0 4464732 2 00000000f0392f68 0
   20: 0100007F:1F90 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 5512 2 0000000061f8ec90 37
`;
  expect([...readDropTable(text)]).toEqual([
    ['4464732', 0],
    ['5512', 37],
  ]);
});
