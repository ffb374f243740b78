/**
 * Answers to what operators ask of live flows: a scan of the tables that builds nothing but the lines it gives, and changes
 * nothing unless it is asked to kill.
 */
import {
  formatAddress,
  isUnanswerable,
  prefixMask,
  sameAddress,
  unmap,
  type Address,
} from './address.ts';
import { assertNever, present } from './assert.ts';
import type { Cidr } from './cidr.ts';
import { flowId, type FlowId } from './brand.ts';
import type { Cluster, Clusters } from './clusters.ts';
import type { Backend } from './contract.ts';
import type { Fates } from './fates.ts';
import {
  FLOWS_LISTED_MAX,
  type FlowAnswer,
  type FlowCount,
  type FlowFilter,
  type FlowLine,
  type FlowQuery,
  type WhyAnswer,
} from './flow-commands.ts';
import { flowName, flowNumbers, noSuchFlow } from './flow-names.ts';
import type { Hash64 } from './hash.ts';
import type { LoopGuard } from './loop-guard.ts';
import { affinityKey } from './placement.ts';
import type { Listener } from './plane-listener.ts';
import type { Listeners } from './plane-listeners.ts';
import { until, type Instant } from './time.ts';

export interface FlowQueriesOptions {
  readonly placementSeed: Hash64;
  readonly listeners: Listeners;
  readonly clusters: Clusters;
  readonly fates: Fates;
  readonly loops: LoopGuard;
  /** Takes and performs what a listener's flow machine has to say. */
  readonly drain: (listener: Listener, now: Instant) => void;
}

type ListFlows = Extract<FlowQuery, { kind: 'ListFlows' }>;

export class FlowQueries {
  private readonly plane: FlowQueriesOptions;
  /** Words of a client's key. */
  private readonly key = new Int32Array(6);

  constructor(plane: FlowQueriesOptions) {
    this.plane = plane;
  }

  answer(query: FlowQuery, now: Instant): FlowAnswer {
    switch (query.kind) {
      case 'ListFlows':
        return this.list(query, now);
      case 'ShowFlow':
      case 'KillFlow':
        return this.one(query, now);
      case 'Why':
        return this.why(query, now);
      case 'CountFlows':
        return { kind: 'FlowCounts', counts: this.counts() };
      default:
        return assertNever(query);
    }
  }

  /** Listeners by their numbers, each from its first slot, until the end or until enough was looked at. */
  private list(query: ListFlows, now: Instant): FlowAnswer {
    const { filter, from = { listener: 0, slot: 0 }, slots = Infinity } = query;
    const limit = Math.min(query.limit, FLOWS_LISTED_MAX);
    const { byNumber } = this.plane.listeners;
    const flows: FlowLine[] = [];
    let matched = 0;
    let left = slots;
    for (let number = from.listener; number < byNumber.length; number += 1) {
      const listener = byNumber[number];
      if (listener === undefined || !isAt(listener, filter.listener)) continue;
      const { table } = listener.manager;
      const first = number === from.listener ? from.slot : 0;
      for (let slot = first; slot < table.highWater; slot += 1) {
        if (left === 0) return { kind: 'Flows', flows, matched, next: { listener: number, slot } };
        left -= 1;
        if (!table.isLive(slot) || !this.fits(listener, slot, filter)) continue;
        matched += 1;
        if (flows.length < limit) flows.push(lineOf(listener, flowId(slot), now));
      }
    }
    return { kind: 'Flows', flows, matched };
  }

  private one(
    { kind, flow: name }: Extract<FlowQuery, { kind: 'ShowFlow' | 'KillFlow' }>,
    now: Instant,
  ): FlowAnswer {
    const [id, serial] = flowNumbers(name) ?? [];
    const listener = id === undefined ? undefined : this.plane.listeners.byNumber[id];
    const flow = serial === undefined ? undefined : listener?.manager.slotOfSerial(serial);
    if (listener === undefined || flow === undefined) return noSuchFlow(name);
    const line = lineOf(listener, flow, now);
    if (kind === 'ShowFlow') return { kind: 'Flow', flow: line };
    listener.manager.abortFlow(flow, now, 'Killed');
    this.plane.drain(listener, now);
    return { kind: 'Killed', flow: line };
  }

  private why(query: Extract<FlowQuery, { kind: 'Why' }>, now: Instant): FlowAnswer {
    const { clusters, fates, placementSeed } = this.plane;
    const [listener] = this.listenersAt(query.listener);
    if (listener === undefined) return nowhere(query.listener, 'is not open');
    const cluster = clusters.of(listener.config);
    if (cluster === undefined) return nowhere(query.listener, 'leads to no cluster');
    const { settings, backends } = cluster;
    const client = unmap(query.client);
    const key = affinityKey(placementSeed, client, settings.affinityWithPort);
    const { table } = listener.manager;
    const slot = table.find(table.hashOf(client, query.local), client, query.local);
    const flow = slot === undefined ? undefined : lineOf(listener, flowId(slot), now);
    return {
      kind: 'Why',
      cluster: settings.cluster,
      policy: settings.loadBalancing,
      key: hexOf(key),
      selection: backends.explain(key, now),
      pinned: flow === undefined ? undefined : { flow, fate: fates.of(flow.backend) },
      dropped: this.whyDropped(query, cluster, flow !== undefined),
    };
  }

  /** What stands before any selection (spec §2.2) and depends on the source alone. */
  private whyDropped(
    { client: asked, local }: Extract<FlowQuery, { kind: 'Why' }>,
    cluster: Cluster,
    hasFlow: boolean,
  ): WhyAnswer['dropped'] {
    const client = unmap(asked);
    if (isUnanswerable(client)) return 'Invalid';
    if (cluster.policer.denies(client)) return 'Denied';
    return !hasFlow && this.plane.loops.refuses(client, local, cluster) ? 'Loop' : undefined;
  }

  private counts(): FlowCount[] {
    return this.listenersAt(undefined).flatMap((listener) => {
      const { table, backends, configs } = listener.manager;
      const counted = new Map<number, { cluster: string; backend: Backend; flows: number }>();
      for (let slot = 0; slot < table.highWater; slot += 1) {
        if (!table.isLive(slot)) continue;
        const [backend, config] = [table.backendOf(slot), table.configOf(slot)];
        // Both are below the number of flows.
        const pair = backend * 2 ** 24 + config;
        const known = counted.get(pair);
        if (known !== undefined) known.flows += 1;
        else {
          const { cluster } = configs.get(config);
          counted.set(pair, { cluster, backend: backends.get(backend), flows: 1 });
        }
      }
      return [...counted.values()].map(({ cluster, backend, flows }) => {
        const { address } = listener.config;
        return { listener: address, cluster, backend: backend.address, flows };
      });
    });
  }

  /** The one at this address, or all. */
  private listenersAt(address: Address | undefined): readonly Listener[] {
    return this.plane.listeners.all.filter((one) => isAt(one, address));
  }

  private fits({ manager }: Listener, slot: number, filter: FlowFilter): boolean {
    const { table, backends, configs } = manager;
    const { cluster, backend, source } = filter;
    if (cluster !== undefined && configs.get(table.configOf(slot)).cluster !== cluster)
      return false;
    if (backend !== undefined) {
      const { address } = backends.get(table.backendOf(slot));
      if (!sameAddress(address, unmap(backend))) return false;
    }
    if (source === undefined) return true;
    table.readKey(slot, this.key, 0);
    return isIn(source, this.key);
  }
}

/** Whether it has this address, or any. */
function isAt({ config }: Listener, address: Address | undefined): boolean {
  return address === undefined || sameAddress(config.address, unmap(address));
}

function nowhere(listener: Address, why: string): FlowAnswer {
  return { kind: 'NotFound', message: `the listener ${formatAddress(listener)} ${why}` };
}

function lineOf(listener: Listener, id: FlowId, now: Instant): FlowLine {
  const flow = present(listener.manager.flow(id), 'the flow is live');
  return {
    name: flowName(listener.id, flow.serial),
    listener: listener.config.address,
    cluster: flow.config.cluster,
    client: flow.client,
    local: flow.local,
    backend: flow.backend,
    phase: flow.phase,
    requests: flow.requestsSeen,
    responses: flow.responsesSeen,
    age: until(flow.createdAt, now),
    idleIn: until(now, flow.idleDeadline),
  };
}

/** Whether the client of a key as `FlowTable.readKey` writes it, address a, family and port, address b, c, d, is in a block. */
function isIn({ base, bits }: Cidr, key: Int32Array): boolean {
  const [a = 0, endpoint = 0, b = 0, c = 0, d = 0] = key;
  if (endpoint >>> 16 !== base.family || ((a ^ base.a) & prefixMask(bits)) !== 0) return false;
  return (
    ((b ^ base.b) & prefixMask(bits - 32)) === 0 &&
    ((c ^ base.c) & prefixMask(bits - 64)) === 0 &&
    ((d ^ base.d) & prefixMask(bits - 96)) === 0
  );
}

function hexOf({ high, low }: Hash64): string {
  return [high, low].map((word) => word.toString(16).padStart(8, '0')).join('');
}
