/**
 * What the core alone costs: no socket, no pump, a datagram goes in and its outputs are drained.
 * The input and its address are made for each datagram, as a driver makes them, so their time and
 * bytes are in the figures. Their fields are computed from a number: the bench itself touches no
 * memory per flow, and what grows with the flows is the core's.
 */
import { ipv4, type Address } from '../../core/address.ts';
import { flowId } from '../../core/brand.ts';
import {
  NO_CLUSTER,
  type Backend,
  type BackendSource,
  type ManagerInput,
} from '../../core/contract.ts';
import { PLACEMENT_SEED } from '../../core/hash.ts';
import { FlowTable } from '../../core/flow-table.ts';
import { UdpManager } from '../../core/manager.ts';
import { createRandom } from '../../core/random.ts';
import { instant, seconds, type Duration } from '../../core/time.ts';
import { median, quartiles, type Quartiles } from './statistics.ts';

export interface InCoreOptions {
  /** Rounds in which the populations take turns. */
  readonly rounds: number;
  /** Datagrams of each direction that a population forwards in a round. */
  readonly datagrams: number;
  /** Inserts of one run, and how many runs. */
  readonly inserts: number;
  readonly insertRuns: number;
  /** `globalThis.gc`. */
  readonly collect: () => void;
  readonly progress: (text: string) => void;
}

/** Nanoseconds and bytes per forwarded datagram. */
export interface ForwardingCost {
  readonly flows: number;
  readonly active: number;
  readonly client: Quartiles;
  readonly backend: Quartiles;
  readonly clientBytes: number;
  readonly backendBytes: number;
}

/** Microseconds by the clock. */
export interface InsertTimes {
  readonly name: string;
  /** Longest insert of each run, with every moment in which something else had the processor. */
  readonly longest: readonly number[];
  /** 99.99th percentile of each run. */
  readonly tail: readonly number[];
  /**
   * The longest when each insert counts as in its best run. The scheduler seldom hits the same one
   * twice; a table that stops to grow always does.
   */
  readonly longestRepeatable: number;
}

export interface InCoreResult {
  /** Bytes per flow at 100,000: all arrays of a manager, and the flow table with its index. */
  readonly managerBytesPerFlow: number;
  readonly tableBytesPerFlow: number;
  /** In the order of `POPULATIONS`. */
  readonly forwarding: readonly ForwardingCost[];
  readonly inserts: readonly InsertTimes[];
}

type Direction = 'client' | 'backend';

interface Population {
  readonly flows: number;
  readonly active: number;
  readonly manager: UdpManager;
  /** Flow numbers in the order of their datagrams, drawn before the clock runs. */
  readonly draws: Int32Array;
  next: number;
  clock: number;
}

/** Live flows, and how many of them get datagrams, drawn uniformly. */
const POPULATIONS = [
  { flows: 100, active: 100 },
  { flows: 10_000, active: 10_000 },
  { flows: 100_000, active: 100_000 },
  { flows: 100_000, active: 100 },
];
const DRAWS = 1 << 20;
/** Datagrams between two readings of the heap: few enough that no collection falls between them. */
const HEAP_BATCH = 1_000;
const PAYLOAD = new Uint8Array(64);
const TABLE_SEED = { first: 0x243f6a88, second: 0x85a308d3 };
const BACKEND: Backend = {
  id: 'echo',
  address: ipv4(0x7f000001, 7_000),
  weight: 100,
  backup: false,
};
const BACKENDS: BackendSource = { select: () => BACKEND };
/** The clock of a population moves a microsecond per datagram. */
const NEVER = seconds(36_000);

export function measureInCore(options: InCoreOptions): InCoreResult {
  const flows = 100_000;
  // Memory first, while nothing that is no longer wanted waits to be freed.
  const managerBytesPerFlow = managerBytes(flows, options.collect) / flows;
  return {
    managerBytesPerFlow,
    tableBytesPerFlow: new FlowTable(flows, TABLE_SEED, false).byteLength / flows,
    forwarding: measureForwarding(options),
    inserts: [
      measureInserts('flow table', options, tableInserter),
      measureInserts('admission', options, admissionInserter),
    ],
  };
}

function measureForwarding(options: InCoreOptions): ForwardingCost[] {
  const populations = POPULATIONS.map(({ flows, active }) => populate(flows, active));
  const series = populations.map(emptySeries);
  for (let round = -1; round < options.rounds; round += 1) {
    options.progress(`forwarding, round ${Math.max(1, round + 1)} of ${options.rounds}`);
    for (const [at, population] of populations.entries()) {
      const client = timeForwarding(population, 'client', options.datagrams);
      const backend = timeForwarding(population, 'backend', options.datagrams);
      // The first round only compiles the code.
      if (round < 0) continue;
      series[at]?.client.push(client);
      series[at]?.backend.push(backend);
    }
  }
  return populations.map((population, at) => ({
    flows: population.flows,
    active: population.active,
    client: quartiles(series[at]?.client ?? []),
    backend: quartiles(series[at]?.backend ?? []),
    clientBytes: bytesPerDatagram(population, 'client', options.collect),
    backendBytes: bytesPerDatagram(population, 'backend', options.collect),
  }));
}

function emptySeries(): Record<Direction, number[]> {
  return { client: [], backend: [] };
}

/** A manager with `flows` live flows, of which `active`, chosen by chance, will get datagrams. */
function populate(flows: number, active: number): Population {
  const manager = createManager(flows);
  const insert = admissionInserter(flows, manager);
  for (let number = 0; number < flows; number += 1) insert(number);
  const random = createRandom({ high: flows, low: active });
  const chosen = Int32Array.from({ length: active }, (_, at) =>
    active === flows ? at : random.below(flows),
  );
  const draws = Int32Array.from({ length: DRAWS }, () => chosen[random.below(active)] ?? 0);
  return { flows, active, manager, draws, next: 0, clock: flows };
}

/** Processor time of the whole process, so the collector's threads count and the neighbours do not. */
function timeForwarding(population: Population, direction: Direction, count: number): number {
  const before = process.cpuUsage();
  forward(population, direction, count);
  const { user, system } = process.cpuUsage(before);
  return ((user + system) * 1_000) / count;
}

function forward(population: Population, direction: Direction, count: number): void {
  const { manager, draws } = population;
  let sent = 0;
  for (let done = 0; done < count; done += 1) {
    const number = draws[population.next] ?? 0;
    population.next = (population.next + 1) % DRAWS;
    population.clock += 1;
    manager.handleInput(inputOf(direction, number), instant(population.clock));
    for (let output = manager.pollOutput(); output !== undefined; output = manager.pollOutput()) {
      if (output.kind === 'SendToBackend' || output.kind === 'SendToClient') sent += 1;
    }
    manager.pollTimeout();
  }
  if (sent !== count) throw new Error(`${count} datagrams went in, ${sent} came out`);
}

/** A datagram of flow `number`. */
export function inputOf(direction: Direction, number: number): ManagerInput {
  return direction === 'client'
    ? {
        kind: 'ClientDatagram',
        src: clientAddress(number),
        local: undefined,
        payload: PAYLOAD,
        backends: BACKENDS,
      }
    : { kind: 'BackendDatagram', flow: flowId(number), payload: PAYLOAD };
}

/**
 * Flow `number` is the client 10.x.y.z: the manager, filled in order, gives it the slot of that
 * number.
 */
function clientAddress(number: number): Address {
  return ipv4(0x0a000001 + number, 1_024 + (number & 0x7fff));
}

function bytesPerDatagram(
  population: Population,
  direction: Direction,
  collect: () => void,
): number {
  const batches = Array.from({ length: 21 }, () => {
    collect();
    const before = process.memoryUsage().heapUsed;
    forward(population, direction, HEAP_BATCH);
    return (process.memoryUsage().heapUsed - before) / HEAP_BATCH;
  });
  return median(batches);
}

function managerBytes(flows: number, collect: () => void): number {
  collect();
  const before = process.memoryUsage().arrayBuffers;
  const manager = createManager(flows);
  const bytes = process.memoryUsage().arrayBuffers - before;
  if (manager.maxFlows !== flows) throw new Error('the manager is still wanted here');
  return bytes;
}

/** No flow goes idle while the bench runs, unless `idle` is shorter. */
export function createManager(maxFlows: number, idle: Duration = NEVER): UdpManager {
  return new UdpManager({
    config: { ...NO_CLUSTER, cluster: 'bench', frontTimeout: idle, backTimeout: idle },
    maxFlows,
    maxRxDatagramSize: 1_500,
    placementSeed: PLACEMENT_SEED,
    tableSeed: TABLE_SEED,
  });
}

type Insert = (number: number) => void;
type Inserter = (capacity: number) => Insert;

const WARM_INSERTS = 100_000;
/**
 * What compiled the code stays alive: V8 throws away code that it specialized for an object now
 * dead.
 */
const kept: Insert[] = [];

function tableInserter(capacity: number): Insert {
  const table = new FlowTable(capacity, TABLE_SEED, false);
  return (number) => {
    const client = clientAddress(number);
    table.insert(table.hashOf(client, undefined), client, undefined);
  };
}

/** The whole of an admission: limits, selection, table, deadline, and the outputs drained. */
function admissionInserter(
  capacity: number,
  manager: UdpManager = createManager(capacity),
): Insert {
  return (number) => {
    manager.handleInput(inputOf('client', number), instant(number));
    while (manager.pollOutput() !== undefined);
  };
}

function measureInserts(name: string, options: InCoreOptions, inserter: Inserter): InsertTimes {
  const longest: number[] = [];
  const tail: number[] = [];
  const best = new Float64Array(options.inserts).fill(Infinity);
  const warm = inserter(WARM_INSERTS);
  kept.push(warm);
  timeInserts(WARM_INSERTS, warm);
  for (let run = 0; run < options.insertRuns; run += 1) {
    options.progress(`inserts, ${name}, run ${run + 1} of ${options.insertRuns}`);
    const insert = inserter(options.inserts);
    // The collector's answer to so many new arrays is no part of an insert.
    options.collect();
    const times = timeInserts(options.inserts, insert);
    for (const [at, time] of times.entries()) best[at] = Math.min(best[at] ?? time, time);
    times.sort();
    longest.push(times.at(-1) ?? Number.NaN);
    tail.push(times[Math.floor(times.length * 0.9999)] ?? Number.NaN);
  }
  return { name, longest, tail, longestRepeatable: best.sort().at(-1) ?? Number.NaN };
}

/** Microseconds of each insert. */
function timeInserts(count: number, insert: Insert): Float64Array {
  const times = new Float64Array(count);
  for (let number = 0; number < count; number += 1) {
    const before = performance.now();
    insert(number);
    times[number] = (performance.now() - before) * 1_000;
  }
  return times;
}
