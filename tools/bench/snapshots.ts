/**
 * What a snapshot costs: the time that a data plane with so many live flows stands still for it, its bytes, and the time of
 * the way back. And what it leaves behind: forwarding by the machine that ran before, and by the one that was restored.
 */
import { ipv4 } from '../../core/address.ts';
import { listenerId } from '../../core/brand.ts';
import { CLUSTER_DEFAULTS, type ClusterSettings, type ListenerConfig } from '../../core/config.ts';
import { NO_CLUSTER } from '../../core/contract.ts';
import { DataPlane } from '../../core/data-plane.ts';
import { initialDirectives } from '../../core/directives.ts';
import { PLACEMENT_SEED } from '../../core/hash.ts';
import type { PlaneInput, PlaneOptions } from '../../core/plane-contract.ts';
import { restoreSnapshot, takeSnapshot } from '../../core/snapshot.ts';
import { instant, seconds } from '../../core/time.ts';
import { quartiles, type Quartiles } from './statistics.ts';

export interface SnapshotCost {
  readonly flows: number;
  readonly bytes: number;
  /** Milliseconds by the clock. */
  readonly take: Quartiles;
  readonly restore: Quartiles;
  /** Nanoseconds per client datagram. */
  readonly before: Quartiles;
  readonly restored: Quartiles;
}

const ROUNDS = 15;
const DATAGRAMS = 200_000;

const OPTIONS: PlaneOptions = {
  placementSeed: PLACEMENT_SEED,
  tableSeed: { first: 1, second: 2 },
  randomSeed: { high: 3, low: 4 },
};

/** Of planes with room for just so many flows. */
export function measureSnapshots(populations: readonly number[]): SnapshotCost[] {
  return populations.map(measureOne);
}

function measureOne(flows: number): SnapshotCost {
  const plane = newPlane(flows);
  const take: number[] = [];
  const restore: number[] = [];
  const before: number[] = [];
  const restored: number[] = [];
  let bytes = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    before.push(forward(plane, flows));
    const began = performance.now();
    const snapshot = takeSnapshot(plane);
    const taken = performance.now();
    const other = new DataPlane(OPTIONS);
    restoreSnapshot(other, snapshot);
    const ended = performance.now();
    restored.push(forward(other, flows));
    take.push(taken - began);
    restore.push(ended - taken);
    bytes = snapshot.length;
  }
  return {
    flows,
    bytes,
    take: quartiles(take),
    restore: quartiles(restore),
    before: quartiles(before),
    restored: quartiles(restored),
  };
}

function newPlane(flows: number): DataPlane {
  const plane = new DataPlane(OPTIONS);
  const config = { listeners: [listenerWith(flows)], clusters: [cluster()], grace: seconds(5) };
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
  const src = ipv4(0x0a000000 + Math.floor(flow / 50_000), 1_024 + (flow % 50_000));
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
