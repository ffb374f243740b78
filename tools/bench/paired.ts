/**
 * Compares forwarders fairly on a machine that is never quiet: all of them live at once, each with
 * a load of its own, and take turns of half a second, there and back (A B C, C B A), so that drift
 * and neighbours hit all alike. The figure is the forwarder's own processor time per completed
 * round trip; it is a ratio to the first contender that means something.
 */
import { createSocket } from 'node:dgram';
import type { Contender } from './contenders.ts';
import type { Load, Peers } from './peers.ts';
import { processorTime, start, type Placement, type Program } from './processes.ts';
import { median, pairedRatios, quartiles, type Quartiles } from './statistics.ts';

export interface PairedOptions {
  readonly slices: number;
  readonly sliceMs: number;
  /** Load that each contender gets before the first slice, so that its code is compiled. */
  readonly warmUpMs: number;
  readonly peers: Peers;
  readonly placement: Placement;
  readonly progress: (text: string) => void;
}

export interface Series {
  readonly name: string;
  /** Processor time per round trip, nanoseconds, of each slice. */
  readonly nanoseconds: readonly number[];
  readonly spread: Quartiles;
  readonly tripsPerSecond: number;
  readonly trips: number;
  readonly lost: number;
  /** Median over the first contender's median. */
  readonly ratio: number;
  /** Ratios slice by slice. */
  readonly pairedRatio: Quartiles;
}

export interface PairedResult {
  readonly load: Load;
  readonly sliceMs: number;
  readonly peers: Peers['kind'];
  readonly series: readonly Series[];
}

interface Lane {
  readonly contender: Contender;
  readonly proxy: Program;
  readonly load: Program;
}

interface Slice {
  readonly trips: number;
  readonly lost: number;
  readonly nanoseconds: number;
}

/**
 * Measures `contenders` under `load`. The first one is the baseline. Rejects when one of them does
 * not answer.
 */
export async function measurePaired(
  contenders: readonly Contender[],
  load: Load,
  options: PairedOptions,
): Promise<PairedResult> {
  const programs: Program[] = [];
  let fail: (error: Error) => void = () => undefined;
  const broken = new Promise<never>((_, reject) => {
    fail = reject;
  });
  const launch: Launch = (name, command, processor) => {
    const program = start(name, command, processor);
    programs.push(program);
    void program.ended.then(fail);
    return program;
  };
  try {
    return await Promise.race([broken, compare(contenders, load, options, launch)]);
  } finally {
    await Promise.all(programs.map((program) => program.stop()));
  }
}

type Launch = (name: string, command: readonly string[], processor: number | undefined) => Program;

async function compare(
  contenders: readonly Contender[],
  load: Load,
  options: PairedOptions,
  launch: Launch,
): Promise<PairedResult> {
  const lanes = await openLanes(contenders, load, options, launch);
  for (const lane of lanes) await warmUp(lane, options);
  const slices = await takeTurns(lanes, options);
  const series = summarize(lanes, slices, options.sliceMs);
  return { load, sliceMs: options.sliceMs, peers: options.peers.kind, series };
}

async function openLanes(
  contenders: readonly Contender[],
  load: Load,
  { peers, placement }: PairedOptions,
  launch: Launch,
): Promise<Lane[]> {
  const echo = launch('echo', peers.echo, placement.peers);
  const backendPort = Number((await echo.waitFor(/^listening \d+$/)).split(' ')[1]);
  const lanes: Lane[] = [];
  for (const contender of contenders) {
    const port = await freePort();
    const command = contender.command({ port, backendPort });
    const proxy = launch(contender.name, command, placement.proxy);
    await proxy.waitFor(/listening/i);
    const loader = launch('load', peers.load(port, load), placement.peers);
    await loader.waitFor(/^ready$/);
    lanes.push({ contender, proxy, load: loader });
  }
  return lanes;
}

/** The kernel's choice, asked for and given back: a configuration cannot say "any port". */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = createSocket('udp4').once('error', reject);
    socket.bind(0, '127.0.0.1', () => {
      const { port } = socket.address();
      socket.close(() => resolve(port));
    });
  });
}

async function warmUp(lane: Lane, { warmUpMs, progress }: PairedOptions): Promise<void> {
  progress(`${lane.contender.name}: warming up`);
  const { trips } = await runSlice(lane, warmUpMs);
  if (trips === 0) throw new Error(`no datagram came back through ${lane.contender.name}`);
}

async function takeTurns(lanes: readonly Lane[], options: PairedOptions): Promise<Slice[][]> {
  const taken: Slice[][] = lanes.map(() => []);
  const there = [...lanes.keys()];
  const back = there.toReversed();
  for (let round = 0; round < options.slices; round += 1) {
    options.progress(`slice ${round + 1} of ${options.slices}`);
    for (const at of round % 2 === 0 ? there : back) {
      const lane = lanes[at];
      if (lane !== undefined) taken[at]?.push(await runSlice(lane, options.sliceMs));
    }
  }
  return taken;
}

async function runSlice({ proxy, load }: Lane, lengthMs: number): Promise<Slice> {
  const before = processorTime(proxy.pid);
  const answer = load.waitFor(/^\d+ \d+$/, lengthMs + 10_000);
  load.say(`${lengthMs}`);
  const [trips = 0, lost = 0] = (await answer).split(' ').map(Number);
  const spent = processorTime(proxy.pid) - before;
  return { trips, lost, nanoseconds: spent / Math.max(1, trips) };
}

function summarize(lanes: readonly Lane[], slices: Slice[][], sliceMs: number): Series[] {
  const costs = slices.map((list) => list.map((slice) => slice.nanoseconds));
  const baseline = costs[0] ?? [];
  return lanes.map(({ contender }, at) => {
    const nanoseconds = costs[at] ?? [];
    const trips = (slices[at] ?? []).map((slice) => slice.trips);
    return {
      name: contender.name,
      nanoseconds,
      spread: quartiles(nanoseconds),
      tripsPerSecond: (median(trips) * 1_000) / sliceMs,
      trips: sum(trips),
      lost: sum((slices[at] ?? []).map((slice) => slice.lost)),
      ratio: median(nanoseconds) / median(baseline),
      pairedRatio: quartiles(pairedRatios(nanoseconds, baseline)),
    };
  });
}

function sum(list: readonly number[]): number {
  return list.reduce((total, item) => total + item, 0);
}
