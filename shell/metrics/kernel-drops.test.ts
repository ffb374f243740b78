/** The kernel's own drops: read from a real socket and from files of its shape, and sums that outlive a socket. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { parseAddress, present, type Address } from '../../core/index.ts';
import { inodeOf } from '../drivers/inode.ts';
import { KernelDrops, KernelWatch } from './kernel-drops.ts';

const HEAD =
  '   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops             ';

test('a socket that nobody reads shows what waits, and then what the kernel dropped', async () => {
  const receiver = createSocket({ type: 'udp4', recvBufferSize: 1 });
  const sender = createSocket('udp4');
  onTestFinished(() => void sender.close());
  onTestFinished(() => void receiver.close());
  receiver.bind(0, '127.0.0.1');
  await once(receiver, 'listening');
  const { port } = receiver.address();
  const inode = present(inodeOf(receiver), 'Linux tells');
  const socket = { address: addressOf(`127.0.0.1:${port}`), port, inode };
  const drops = new KernelDrops();
  const at = `127.0.0.1:${port}`;
  expect((await drops.read([socket])).get(at)).toEqual({ drops: 0, queuedBytes: 0 });
  // A listener that is not being read: the event loop is not left until the last is sent.
  let received = 0;
  receiver.on('message', () => (received += 1));
  const sent = 200;
  const pending = Array.from(
    { length: sent },
    () =>
      new Promise<void>((resolve, reject) => {
        sender.send(Buffer.alloc(1_000), port, '127.0.0.1', (error) =>
          error === null ? resolve() : reject(error),
        );
      }),
  );
  await Promise.all(pending);
  for (;;) {
    const figures = present((await drops.read([socket])).get(at), 'it is known');
    if (figures.queuedBytes > 0) continue;
    expect(figures.drops).toBeGreaterThan(0);
    expect(figures.drops + received).toBe(sent);
    break;
  }
});

test('takes the line of the inode and port, and of no other socket', async () => {
  const file = fileWith([
    line({ local: '0100007F:14E9', inode: 7, drops: 3, queue: 'A0' }),
    line({ local: '0100007F:14E9', remote: '0100007F:0035', state: '01', inode: 7, drops: 100 }),
    line({ local: '0100007F:14EA', inode: 8, drops: 1_000 }),
    line({ local: '0100007F:14EB', inode: 9, drops: 10_000 }),
  ]);
  const figures = await new KernelDrops([file]).read([
    { address: addressOf('127.0.0.1:5353'), port: 5_353, inode: 7 },
    // Another socket has this inode by now.
    { address: addressOf('127.0.0.1:5355'), port: 5_356, inode: 9 },
  ]);
  expect([...figures]).toEqual([
    ['127.0.0.1:5353', { drops: 3, queuedBytes: 160 }],
    ['127.0.0.1:5355', { drops: 0, queuedBytes: 0 }],
  ]);
});

test('finds a listener among fifty thousand flows, wherever a piece of the file ends', async () => {
  const flows = Array.from({ length: 25_000 }, (_, n) =>
    line({
      local: `0100007F:${(n + 1_024).toString(16).toUpperCase().padStart(4, '0')}`,
      remote: '0100007F:0035',
      state: '01',
      inode: n,
    }),
  );
  const wanted = line({ local: '0100007F:14E9', inode: 70_007, drops: 3 });
  const file = fileWith([...flows, wanted, ...flows]);
  const socket = { address: addressOf('127.0.0.1:5353'), port: 5_353, inode: 70_007 };
  const figures = await new KernelDrops([file]).read([socket]);
  expect(figures.get('127.0.0.1:5353')).toEqual({ drops: 3, queuedBytes: 0 });
});

test('a socket that is opened anew begins at zero, and the sum goes on', async () => {
  const file = fileWith([]);
  const drops = new KernelDrops([file, '/nowhere/udp6']);
  const socket = (inode: number): Parameters<KernelDrops['read']>[0] => [
    { address: addressOf('127.0.0.1:5353'), port: 5_353, inode },
  ];
  const rewrite = (...lines: string[]): void => writeFileSync(file, text(lines));
  rewrite(line({ local: '0100007F:14E9', inode: 7, drops: 3, queue: 'A0' }));
  await drops.read(socket(7));
  rewrite(line({ local: '0100007F:14E9', inode: 8, drops: 2 }));
  expect((await drops.read(socket(8))).get('127.0.0.1:5353')).toEqual({ drops: 5, queuedBytes: 0 });
  expect((await drops.read([])).get('127.0.0.1:5353')).toEqual({ drops: 5, queuedBytes: 0 });
  rewrite(line({ local: '0100007F:14E9', inode: 9, drops: 1 }));
  expect((await drops.read(socket(9))).get('127.0.0.1:5353')?.drops).toBe(6);
  // Where the kernel does not tell, what is known stays.
  rewrite();
  expect((await drops.read(socket(9))).get('127.0.0.1:5353')?.drops).toBe(6);
});

test('who asks gets a fresh read where it is quick, and what is known where it is not', async () => {
  let clock = 0;
  const reads: ((drops: number) => void)[] = [];
  const watch = new KernelWatch(
    () => [],
    {
      read: () =>
        new Promise((resolve) => {
          reads.push((drops) => resolve(new Map([['a', { drops, queuedBytes: 0 }]])));
        }),
      close: () => undefined,
    },
    () => clock,
  );
  const finish = async (drops: number, took: number): Promise<void> => {
    clock += took;
    reads.shift()?.(drops);
    await nextTurn();
  };
  const ask = async (): Promise<number | undefined> => (await watch.figures()).get('a')?.drops;
  // The first read has not ended: nobody waits for ever.
  expect(await ask()).toBeUndefined();
  await finish(1, 100);
  // It took 100 ms, so for 900 ms it is not read again.
  clock += 899;
  expect([await ask(), reads.length]).toEqual([1, 0]);
  clock += 1;
  const asking = Promise.all([ask(), ask()]);
  expect(reads).toHaveLength(1);
  await finish(2, 0);
  expect(await asking).toEqual([2, 2]);
  const again = ask();
  await finish(3, 0);
  expect(await again).toBe(3);
});

test('a read that is under way ends when nobody needs it any more', async () => {
  const wanted = line({ local: '0100007F:14E9', inode: 7, drops: 3 });
  const others = Array.from({ length: 5_000 }, () => line({ local: '0100007F:14EA', inode: 8 }));
  const drops = new KernelDrops([fileWith([...others, wanted])]);
  const reading = drops.read([{ address: addressOf('127.0.0.1:5353'), port: 5_353, inode: 7 }]);
  drops.close();
  expect((await reading).get('127.0.0.1:5353')?.drops).toBe(0);
});

interface Line {
  readonly local: string;
  readonly inode: number;
  readonly remote?: string;
  readonly state?: string;
  readonly queue?: string;
  readonly drops?: number;
}

function line(about: Line): string {
  const { local, inode, remote = '00000000:0000', state = '07', queue = '0', drops = 0 } = about;
  const queues = `00000000:${queue.padStart(8, '0')}`;
  return `  123: ${local} ${remote} ${state} ${queues} 00:00000000 00000000     0        0 ${inode} 2 0000000000000000 ${drops}`.padEnd(
    127,
  );
}

function text(lines: readonly string[]): string {
  return `${[HEAD, ...lines].join('\n')}\n`;
}

function fileWith(lines: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'sozu-udp-drops-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'udp');
  writeFileSync(file, text(lines));
  return file;
}

function addressOf(name: string): Address {
  return present(parseAddress(name), 'a literal');
}
