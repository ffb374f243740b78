/**
 * What a limit says is what there is at most: flows of a listener, of an address and of a subnet when one more is admitted,
 * new flows and datagrams over time, datagrams in egress queues, probes in flight. Each is counted anew from what went in and
 * out, so a count that the proxy keeps is not believed. Limits are upper bounds: who refuses more breaks none. Each data plane
 * keeps them for itself: it has its share of the flows of a listener, and a source that comes to several has its limit in each.
 */
import type { Address } from '../../../core/address.ts';
import type { ClusterSettings } from '../../../core/config.ts';
import type { PlaneInput, PlaneOutput } from '../../../core/plane-contract.ts';
import { FLOW_EGRESS, LISTENER_EGRESS } from '../../../core/egress-queue.ts';
import { PROBES_IN_FLIGHT_MAX } from '../../../core/health/probe-plan.ts';
import { instant, until, type Instant } from '../../../core/time.ts';
import { always, alwaysAtMost, type NumericProperty, type Property } from '../../properties.ts';
import type { OracleKind } from '../oracle.ts';
import { PerPlane } from '../per-plane.ts';
import type { Verdicts } from '../verdicts.ts';
import { LiveFlows, type LiveFlow } from './live-flows.ts';

const OF_LISTENER: Property<'always'> = always('no flow is admitted above the cap of its listener');
const OF_ADDRESS: Property<'always'> = always('no address holds more flows than it may');
const OF_SUBNET: Property<'always'> = always('no subnet holds more flows than it may');
const NEW_FLOWS: Property<'always'> = always('no source opens flows faster than it may');
const DATAGRAMS: Property<'always'> = always('no flow sends datagrams faster than it may');
const QUEUED: NumericProperty = alwaysAtMost('egress queues hold what their sockets may queue');
const PROBES: NumericProperty = alwaysAtMost('few probes are in flight at a time');

export const LIMITS_KEPT: OracleKind = {
  name: 'limits',
  begin: (verdicts) => {
    const planes = new PerPlane(() => new Limits(verdicts));
    return {
      hearings: {
        DataInput: ({ process, plane, input, now }) =>
          planes.of(process, plane).hearInput(input, now),
        DataTimeout: ({ process, plane, now }) => planes.of(process, plane).flows.hearTimeout(now),
        DataOutput: ({ process, plane, output }) => planes.of(process, plane).hearOutput(output),
        TurnEnded: ({ process, plane, waiting, probes }) => {
          const { queueable } = planes.of(process, plane);
          verdicts.measure(QUEUED, waiting, queueable, () => `process ${process}`);
          verdicts.measure(PROBES, probes, PROBES_IN_FLIGHT_MAX, () => `process ${process}`);
        },
        Crashed: ({ process }) => planes.delete(process),
        Exited: ({ process }) => planes.delete(process),
      },
    };
  },
};

/** A bucket of tokens as a textbook has it. */
interface Bucket {
  tokens: number;
  at: Instant;
}

class Limits {
  readonly flows: LiveFlows;
  readonly #verdicts: Verdicts;
  readonly #counts = new Map<string, number>();
  /** What the flows that are open count for. */
  readonly #keys = new Map<LiveFlow, Keys>();
  /** By cluster and source. */
  readonly #sources = new Map<string, Bucket>();
  readonly #ofFlows = new WeakMap<LiveFlow, Bucket>();
  readonly #blockedUpstreams = new Set<number>();
  readonly #blockedListeners = new Set<number>();

  constructor(verdicts: Verdicts) {
    this.#verdicts = verdicts;
    this.flows = new LiveFlows(
      {
        opened: (flow, isNew, now) => this.#opened(flow, isNew, now),
        closed: (flow) => this.#closed(flow),
        forwarded: (flow, now) => this.#forwarded(flow, now),
      },
      instant(0),
    );
  }

  /** What may wait at the sockets that have no room. */
  get queueable(): number {
    return (
      this.#blockedUpstreams.size * FLOW_EGRESS.datagrams +
      this.#blockedListeners.size * LISTENER_EGRESS.datagrams
    );
  }

  hearInput(input: PlaneInput, now: Instant): void {
    if (input.kind === 'Directed') this.#forgetSpent(input.message.directive);
    else if (input.kind === 'UpstreamWritable') this.#blockedUpstreams.delete(input.socket);
    else if (input.kind === 'ListenerWritable') this.#blockedListeners.delete(input.listener);
    this.flows.hearInput(input, now);
  }

  hearOutput(output: PlaneOutput): void {
    if (output.kind === 'WatchUpstream') this.#blockedUpstreams.add(output.socket);
    else if (output.kind === 'WatchListener') this.#blockedListeners.add(output.listener);
    else if (output.kind === 'CloseUpstream') this.#blockedUpstreams.delete(output.socket);
    else if (output.kind === 'CloseListener') this.#blockedListeners.delete(output.listener);
    this.flows.hearOutput(output);
  }

  #opened(flow: LiveFlow, isNew: boolean, now: Instant): void {
    const keys = keysOf(flow);
    if (isNew) {
      this.#checkCounts(flow, keys);
      this.#checkRate(flow, now);
    }
    this.#keys.set(flow, keys);
    this.#count(keys, 1);
  }

  #closed(flow: LiveFlow): void {
    const keys = this.#keys.get(flow);
    this.#keys.delete(flow);
    if (keys !== undefined) this.#count(keys, -1);
  }

  #checkCounts(flow: LiveFlow, [ofListener, ofAddress, ofSubnet]: Keys): void {
    const { config, settings, client } = flow;
    const who = (): string => `a flow of ${client.a},${client.d}:${client.port}`;
    const held = (key: string): number => this.#counts.get(key) ?? 0;
    this.#verdicts.check(OF_LISTENER, held(ofListener) < (config?.maxFlows ?? 0), () => {
      return `${who()}: listener ${flow.listener} has ${held(ofListener)} of ${config?.maxFlows}`;
    });
    const { maxFlowsPerIp = 0, maxFlowsPerSubnet = 0 } = settings ?? {};
    this.#verdicts.check(
      OF_ADDRESS,
      maxFlowsPerIp === 0 || held(ofAddress) < maxFlowsPerIp,
      () => `${who()}: it has ${held(ofAddress)} of ${maxFlowsPerIp}`,
    );
    this.#verdicts.check(
      OF_SUBNET,
      maxFlowsPerSubnet === 0 || held(ofSubnet) < maxFlowsPerSubnet,
      () => `${who()}: its subnet has ${held(ofSubnet)} of ${maxFlowsPerSubnet}`,
    );
  }

  #count(keys: Keys, change: 1 | -1): void {
    for (const key of keys) this.#counts.set(key, (this.#counts.get(key) ?? 0) + change);
  }

  #checkRate({ settings, client }: LiveFlow, now: Instant): void {
    if (settings === undefined || settings.rates.newFlowsPerSecond === 0) return;
    const { newFlowsPerSecond: rate, newFlowsBurst } = settings.rates;
    const bits = client.family === 4 ? 32 : settings.subnetPrefixIpv6;
    const key = `${settings.cluster} ${prefixOf(client, bits)}`;
    const bucket = this.#sources.get(key) ?? { tokens: Math.max(1, newFlowsBurst), at: now };
    this.#sources.set(key, bucket);
    const taken = take(bucket, rate, Math.max(1, newFlowsBurst), now);
    this.#verdicts.check(NEW_FLOWS, taken, () => `${key}: more than ${rate} flows a second`);
  }

  #forwarded(flow: LiveFlow, now: Instant): void {
    const { settings } = flow;
    if (settings === undefined || settings.rates.datagramsPerSecond === 0) return;
    const { datagramsPerSecond: rate, datagramsBurst } = settings.rates;
    const burst = Math.max(1, datagramsBurst);
    const bucket = this.#ofFlows.get(flow) ?? { tokens: burst, at: now };
    this.#ofFlows.set(flow, bucket);
    const taken = take(bucket, rate, burst, now);
    const { a, d, port } = flow.client;
    this.#verdicts.check(DATAGRAMS, taken, () => {
      return `the flow of ${a},${d}:${port} sends more than ${rate} datagrams a second`;
    });
  }

  /** Other rates, or a cluster that is gone: what was spent is forgotten. */
  #forgetSpent(directive: Extract<PlaneInput, { kind: 'Directed' }>['message']['directive']): void {
    if (directive.kind !== 'SetCluster' && directive.kind !== 'RemoveCluster') return;
    const name = directive.kind === 'SetCluster' ? directive.settings.cluster : directive.cluster;
    const before = this.flows.directed.clusters.get(name);
    if (directive.kind === 'SetCluster' && sameRates(before, directive.settings)) return;
    for (const key of this.#sources.keys())
      if (key.startsWith(`${name} `)) this.#sources.delete(key);
  }
}

function sameRates(one: ClusterSettings | undefined, other: ClusterSettings): boolean {
  return (
    one?.rates.newFlowsPerSecond === other.rates.newFlowsPerSecond &&
    one.rates.newFlowsBurst === other.rates.newFlowsBurst &&
    one.rates.columns === other.rates.columns &&
    one.subnetPrefixIpv6 === other.subnetPrefixIpv6
  );
}

/** Whether there was a token, but for the microsecond that a clock rounds away. */
function take(bucket: Bucket, rate: number, burst: number, now: Instant): boolean {
  const gained = (until(bucket.at, now) * rate) / 1_000_000;
  bucket.tokens = Math.min(burst, bucket.tokens + gained) - 1;
  bucket.at = now;
  return bucket.tokens >= -(rate + 1) / 1_000_000;
}

/** What a flow counts for: its listener, and its address and its subnet in the cluster it was admitted to. */
type Keys = readonly [string, string, string];

function keysOf({ listener, client, settings }: LiveFlow): Keys {
  const inCluster = `${listener} ${settings?.cluster ?? ''}`;
  const isIpv4 = client.family === 4;
  const bits = isIpv4 ? settings?.subnetPrefixIpv4 : settings?.subnetPrefixIpv6;
  return [
    `listener ${listener}`,
    `${inCluster} address ${prefixOf(client, isIpv4 ? 32 : 128)}`,
    `${inCluster} subnet ${prefixOf(client, bits ?? 0)}`,
  ];
}

/** The first bits of an address, as digits. */
function prefixOf({ family, a, b, c, d }: Address, bits: number): string {
  if (family === 4) return `${leading(a, bits)}/${bits}`;
  const kept = [a, b, c, d].map((word, at) => leading(word, bits - 32 * at));
  return `${kept.join(':')}/${bits}`;
}

function leading(word: number, bits: number): number {
  if (bits >= 32) return word >>> 0;
  const size = 2 ** (32 - Math.max(0, bits));
  return Math.floor((word >>> 0) / size) * size;
}
