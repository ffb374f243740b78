/**
 * The load generator of a bench. Prints "ready" when its sockets are there; then for each line on stdin
 *
 *   closed MS         a closed loop: prints TRIPS LOST SILENT, the last one flows that never got an answer
 *   touch MS          one datagram on each of its flows, active or not, until it has had an answer
 *   open MS RATE      so many datagrams a second, over all flows: prints SENT RECEIVED P50 P99 P999, in microseconds;
 *                     with FIRST COUNT behind it, over those flows alone
 *
 * Usage: load.js PORT SOURCE FLOWS ACTIVE WINDOW BYTES IN_BURSTS OFFLOAD, the last two 0 or 1
 */
import { createInterface } from 'node:readline';
import { parseIp } from '../../core/index.ts';
import { ClosedLoop } from './closed-loop.ts';
import { LoadSockets } from './load-sockets.ts';
import { parseLoad } from './loads.ts';
import { OpenLoop, type OpenLoopOptions } from './open-loop.ts';
import { peerDriver } from './peer-driver.ts';

const [port = '0', source = '127.0.0.1', ...words] = process.argv.slice(2);
const load = parseLoad(words);
const peer = peerDriver({ offload: load.offload ?? false, clients: parseIp(source, 0) });
const sockets = new LoadSockets(peer, Number(port), load.flows);
let slices = 0;

process.stdout.write('ready\n');
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${await answer(line)}\n`);
}
process.exit();

async function answer(line: string): Promise<string> {
  const [kind, ...numbers] = line.split(' ');
  const [lengthMs = 0, rate = 0, first = 0, count = load.flows] = numbers.map(Number);
  slices = (slices + 1) & 0xffff;
  if (kind === 'open') return runOpen({ lengthMs, rate, first, count });
  return runClosed(lengthMs, kind === 'touch');
}

async function runClosed(lengthMs: number, isTouch: boolean): Promise<string> {
  const { bytes, flows } = load;
  const traffic = new ClosedLoop(sockets, isTouch ? { flows, window: 1, bytes } : load, {
    now: performance.now(),
    lengthMs,
    mark: slices,
    isTouch,
  });
  await sockets.run(traffic);
  return `${traffic.trips} ${traffic.lost} ${traffic.silent}`;
}

async function runOpen(
  options: Pick<OpenLoopOptions, 'lengthMs' | 'rate' | 'first' | 'count'>,
): Promise<string> {
  const traffic = new OpenLoop(sockets, load, {
    ...options,
    now: performance.now(),
    mark: slices,
  });
  await sockets.run(traffic);
  const times = [0.5, 0.99, 0.999].map((share) => traffic.latency(share));
  return [traffic.sent, traffic.received, ...times].join(' ');
}
