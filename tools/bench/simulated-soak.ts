/**
 * An hour in the life of a proxy, in a simulated world: clients that come and go, at a modest rate, with every datagram and
 * every descriptor accounted for. Nothing may be kept of what is over: an hour takes no more memory than a minute.
 */
import { instant } from '../../core/time.ts';
import {
  backendList,
  configOf,
  Observer,
  proxyOf,
  seedFromNumber,
  worldOf,
} from '../../sim/index.ts';
import { FactHub } from '../../sim/world/facts.ts';
import { CONSERVATION } from '../../sim/world/oracles/conservation.ts';
import { DESCRIPTORS } from '../../sim/world/oracles/descriptors.ts';
import { INVARIANTS } from '../../sim/world/oracles/invariants.ts';
import { Verdicts } from '../../sim/world/verdicts.ts';
import { World } from '../../sim/world/world.ts';

export interface SimulatedSoakOptions {
  /** Virtual ones. */
  readonly minutes: number;
  /** `globalThis.gc`. */
  readonly collect: () => void;
  readonly progress: (text: string) => void;
}

export interface SimulatedSoakResult {
  readonly minutes: number;
  /** Datagrams of clients, and answers that they heard. */
  readonly sent: number;
  readonly heard: number;
  readonly flows: number;
  /** Bytes that this process holds at the end of each virtual minute. */
  readonly memory: readonly number[];
}

const CLIENTS = 128;
const BACKENDS = 4;
const PER_SECOND = 200;
/** So many clients ask for as long as this, then the next; flows are idle after two seconds. */
const TOGETHER = 32;
const PERIOD_SECONDS = 3;
const SECONDS = 1_000_000;
const SEED = seedFromNumber(7);

/** Throws when a datagram or a descriptor is not accounted for. */
export function soakSimulated(options: SimulatedSoakOptions): SimulatedSoakResult {
  const { minutes, collect, progress } = options;
  const hub = new FactHub();
  const counts = { sent: 0, heard: 0, flows: 0 };
  hub.join({
    ClientSent: () => void (counts.sent += 1),
    ClientHeard: () => void (counts.heard += 1),
    Bound: () => void (counts.flows += 1),
  });
  const spec = worldOf(
    { clients: CLIENTS, backends: BACKENDS },
    { proxies: [proxyOf(configOf({ backends: backendList(BACKENDS) }))] },
  );
  const verdicts = new Verdicts(new Observer());
  for (const kind of [CONSERVATION, DESCRIPTORS, INVARIANTS]) {
    hub.join(kind.begin(verdicts, spec).hearings);
  }
  const world = new World(spec, SEED, hub);
  const memory: number[] = [];
  for (let minute = 0; minute < minutes; minute += 1) {
    liveThrough(world, minute);
    world.count();
    collect();
    const { heapUsed, external } = process.memoryUsage();
    memory.push(heapUsed + external);
    progress(`minute ${minute + 1} of ${minutes}`);
  }
  return { minutes, ...counts, memory };
}

function liveThrough(world: World, minute: number): void {
  const first = minute * 60 * PER_SECOND;
  for (let number = first; number < first + 60 * PER_SECOND; number += 1) {
    world.runTo(instant(Math.floor((number * SECONDS) / PER_SECOND) + 1));
    const period = Math.floor(number / PER_SECOND / PERIOD_SECONDS);
    const client = (period * TOGETHER + (number % TOGETHER)) % CLIENTS;
    world.perform({ kind: 'Send', client, proxy: 0, listener: 0, bytes: 64 });
  }
}
