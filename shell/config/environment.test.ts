/** What is known of a machine that does not answer. */
import { networkInterfaces } from 'node:os';
import { expect, test, vi } from 'vitest';
import { readEnvironment } from './environment.ts';

vi.mock('node:os', () => ({ networkInterfaces: vi.fn<typeof networkInterfaces>() }));

test('a process without descriptors cannot list interfaces, and goes on without', () => {
  vi.mocked(networkInterfaces).mockImplementation(() => {
    throw new Error('uv_interface_addresses returned Unknown system error 24');
  });
  expect(readEnvironment().localAddresses).toBeUndefined();
});
