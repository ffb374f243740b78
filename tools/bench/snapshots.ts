/**
 * What a snapshot costs: the time that a data plane with so many live flows stands still for it, into new memory and into
 * memory that was used before, its bytes, and the time of the rest: its checksum, and the way back. And what it leaves behind:
 * forwarding by the machine that ran before, and by the one that was restored.
 */
import { ipv4 } from '../../core/address.ts';
import { listenerId } from '../../core/brand.ts';
import { CLUSTER_DEFAULTS, type ClusterSettings, type ListenerConfig } from '../../core/config.ts';
import { NO_CLUSTER } from '../../core/contract.ts';
import { DataPlane } from '../../core/data-plane.ts';
import { initialDirectives } from '../../core/directives.ts';
import { PLACEMENT_SEED } from '../../core/hash.ts';
import type { PlaneInput, PlaneOptions } from '../../core/plane-contract.ts';
import { coreCatalog } from '../../core/snapshot-classes.ts';
import { draftFrom, type SnapshotDraft } from '../../core/snapshot-machines.ts';
import { SnapshotMemory } from '../../core/snapshot-memory.ts';
import { restoreSnapshot, takeSnapshot } from '../../core/snapshot.ts';
import { instant, seconds } from '../../core/time.ts';
import { quartiles, type Quartiles } from './statistics.ts';

export interface SnapshotCost extends Population {
  readonly bytes: number;
  /** Milliseconds by the clock, as the ones below: the traffic stands still. */
  readonly first: Quartiles;
  readonly later: Quartiles;
  /** The longest slice of what is left to do when somebody reads it. */
  readonly slice: Quartiles;
  readonly restore: Quartiles;
  /** Nanoseconds per client datagram. */
  readonly before: Quartiles;
  readonly restored: Quartiles;
}

/** Live flows, each of a client of its own, and how many there is room for. */
export interface Population {
  readonly flows: number;
  readonly room: number;
}

const ROUNDS = 15;
const DATAGRAMS = 200_000;

const OPTIONS: PlaneOptions = {
  placementSeed: PLACEMENT_SEED,
  tableSeed: { first: 1, second: 2 },
  randomSeed: { high: 3, low: 4 },
};

export function measureSnapshots(populations: readonly Population[]): SnapshotCost[] {
  return populations.map(measureOne);
}

function measureOne({ flows, room }: Population): SnapshotCost {
  const plane = newPlane(flows, room);
  const times = { first: [], later: [], slice: [], restore: [], before: [], restored: [] };
  const { first, later, slice, restore, before, restored }: Record<keyof typeof times, number[]> =
    times;
  const memory = new SnapshotMemory();
  let bytes = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    before.push(forward(plane, flows));
    first.push(timeOf(() => draftOf(plane, new SnapshotMemory())));
    // Used once before it counts, and colder each time than a second snapshot right after the first.
    if (round === 0) draftOf(plane, memory);
    forward(plane, flows);
    later.push(timeOf(() => draftOf(plane, memory)));
    slice.push(longestSlice(draftOf(plane, memory)));
    const snapshot = takeSnapshot(plane);
    const other = new DataPlane(OPTIONS);
    restore.push(timeOf(() => restoreSnapshot(other, snapshot)));
    restored.push(forward(other, flows));
    bytes = snapshot.length;
  }
  return {
    flows,
    room,
    bytes,
    first: quartiles(first),
    later: quartiles(later),
    slice: quartiles(slice),
    restore: quartiles(restore),
    before: quartiles(before),
    restored: quartiles(restored),
  };
}

function draftOf(plane: DataPlane, memory: SnapshotMemory): SnapshotDraft {
  return draftFrom(coreCatalog(), [plane], { payloads: 'lengths', memory });
}

function longestSlice(draft: SnapshotDraft): number {
  let longest = 0;
  let began = performance.now();
  for (const _ of draft.slices()) {
    const ended = performance.now();
    longest = Math.max(longest, ended - began);
    began = ended;
  }
  return longest;
}

function timeOf(work: () => void): number {
  const began = performance.now();
  work();
  return performance.now() - began;
}

function newPlane(flows: number, room: number): DataPlane {
  const plane = new DataPlane(OPTIONS);
  const config = { listeners: [listenerWith(room)], clusters: [cluster()], grace: seconds(5) };
  for (const directive of initialDirectives(config)) {
    feed(plane, { kind: 'Directed', message: { generation: 1, directive } });
  }
  feed(plane, { kind: 'ListenerAnswer', listener: listenerId(0), errno: undefined });
  feed(plane, { kind: 'Flushed' });
  for (let flow = 0; flow < flows; flow += 1) feed(plane, datagramOf(flow));
  feed(plane, { kind: 'Flushed' });
  return plane;
}

/** Nanoseconds for each of many client datagrams on live flows. */
function forward(plane: DataPlane, flows: number): number {
  const began = performance.now();
  for (let count = 0; count < DATAGRAMS; count += 1) {
    feed(plane, datagramOf((count * 7_919) % flows));
    if (count % 64 === 63) feed(plane, { kind: 'Flushed' });
  }
  return ((performance.now() - began) * 1e6) / DATAGRAMS;
}

function feed(plane: DataPlane, input: PlaneInput): void {
  plane.handleInput(input, instant(0));
  for (let output = plane.pollOutput(); output !== undefined; output = plane.pollOutput());
}

const PAYLOAD = new Uint8Array(64).fill(1);

function datagramOf(flow: number): PlaneInput {
  const src = ipv4(0x0a000000 + flow, 1_024 + (flow % 50_000));
  const listener = listenerId(0);
  return { kind: 'ClientArrived', listener, src, local: undefined, payload: PAYLOAD };
}

function listenerWith(maxFlows: number): ListenerConfig {
  return {
    address: ipv4(0x7f000001, 53),
    frontTimeout: undefined,
    backTimeout: undefined,
    maxRxDatagramSize: 1_500,
    maxFlows,
    ipv6Only: false,
    cluster: 'c',
  };
}

function cluster(): ClusterSettings {
  return {
    ...NO_CLUSTER,
    ...CLUSTER_DEFAULTS,
    cluster: 'c',
    frontTimeout: undefined,
    backTimeout: undefined,
    loadBalancing: 'MAGLEV',
    loadMetric: 'CONNECTIONS',
    allowBackendAsClient: false,
    backends: [1, 2, 3, 4].map((n) => ({
      id: `b${n}`,
      address: ipv4(0x7f000100 + n, 53),
      weight: 100,
      backup: false,
    })),
  };
}
