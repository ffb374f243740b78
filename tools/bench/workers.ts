/**
 * Two workers against one, on two processors that the load and the backend use too: what each sustains, and what a round trip
 * costs at a rate that one sustains. The kernel spreads the flows, so the shares of the workers are its doing.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { batching, type Contender } from './contenders.ts';
import { ask, launchLoad, openFlows, openLanes, withPrograms, type Lane } from './lanes.ts';
import { THOUSAND_FLOWS } from './loads.ts';
import { timed, type PairedOptions } from './paired.ts';
import { together, type Program } from './processes.ts';
import { compareInTurns, type PairedResult, type Runner, type Slice } from './turns.ts';

export interface WorkersResult {
  readonly sustained: PairedResult;
  /** Datagrams a second, the same for both. */
  readonly rate: number;
  readonly atRate: PairedResult;
  /** Of the datagrams that each of two workers received at that rate. */
  readonly shares: readonly number[];
}

/** Of what one worker sustains. */
const SHARE_OF_SUSTAINED = 0.6;
const SOCKET = 'control.sock';

export function measureWorkers(options: PairedOptions): Promise<WorkersResult> {
  const { progress, warmUpMs } = options;
  const placement = together(options.placement);
  return withPrograms(async (launch) => {
    const contenders = [withWorkers('one worker', 1), withWorkers('two workers', 2)];
    const lanes = await openLanes(contenders, { placement }, launch);
    const loads: Program[] = [];
    for (const [number, lane] of lanes.entries()) {
      progress(`${lane.name}: warming up`);
      const load = await launchLoad(lane, THOUSAND_FLOWS, { placement, number }, launch);
      await openFlows(lane, load);
      await ask(load, `closed ${warmUpMs}`, warmUpMs);
      loads.push(load);
    }
    const runners = (run: (lane: Lane, load: Program, ms: number) => Promise<Slice>): Runner[] =>
      lanes.flatMap((lane, at) => {
        const load = loads[at];
        return load === undefined ? [] : [{ name: lane.name, run: (ms) => run(lane, load, ms) }];
      });
    const sustained = await compareInTurns('as fast as it goes', runners(runClosed), options);
    const rate = Math.floor((sustained.series[0]?.tripsPerSecond ?? 0) * SHARE_OF_SUSTAINED);
    progress(`${rate} datagrams a second`);
    const before = await receivedBy(lanes[1]);
    const atRate = await compareInTurns(
      `${rate} datagrams a second`,
      runners((lane, load, ms) => runOpen(lane, load, ms, rate)),
      options,
    );
    const received = (await receivedBy(lanes[1])).map((count, at) => count - (before[at] ?? 0));
    const all = received.reduce((sum, count) => sum + count, 0);
    return { sustained, rate, atRate, shares: received.map((count) => count / all) };
  });
}

function runClosed(lane: Lane, load: Program, ms: number): Promise<Slice> {
  return timed({ ...lane, load }, async () => {
    const [trips = 0, lost = 0] = await ask(load, `closed ${ms}`, ms);
    return { trips, lost };
  });
}

function runOpen(lane: Lane, load: Program, ms: number, rate: number): Promise<Slice> {
  return timed({ ...lane, load }, async () => {
    const [sent = 0, trips = 0] = await ask(load, `open ${ms} ${rate}`, ms);
    return { trips, lost: sent - trips };
  });
}

function withWorkers(name: string, workers: number): Contender {
  return batching(name, { top: `workers = ${workers}\ncommand_socket = "./${SOCKET}"\n` });
}

/** What each worker of a proxy has received so far, as it tells who asks. */
async function receivedBy(lane: Lane | undefined): Promise<number[]> {
  const socket = connect(join(lane?.folder ?? '', SOCKET));
  await once(socket, 'connect');
  socket.write('{"v":1,"id":1,"command":"status"}\n');
  let text = '';
  for await (const chunk of socket) {
    text += String(chunk);
    if (text.includes('\n')) break;
  }
  const workers = /"workers":\[(.*?)\]/.exec(text)?.[1] ?? '';
  return [...workers.matchAll(/"received":(\d+)/g)].map(([, count]) => Number(count));
}
