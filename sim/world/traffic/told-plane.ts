/**
 * What a data plane was told until now: its listeners, its clusters with their backends, and what is wrong with these. Made
 * from directives alone, so that what the plane does can be held against it.
 */
import {
  isLoopback,
  isUnspecified,
  prefixMask,
  sameIp,
  unmap,
  type Address,
} from '../../../core/address.ts';
import type { OperatorState } from '../../../core/balancing/candidates.ts';
import type { ListenerId } from '../../../core/brand.ts';
import type { Cidr } from '../../../core/cidr.ts';
import type { ClusterSettings, ListenerConfig } from '../../../core/config.ts';
import type { Fate } from '../../../core/contract.ts';
import type { Directive, GeneratedDirective } from '../../../core/directives.ts';
import { addressKey, type AddressKey } from '../packet.ts';
import type { Line, Parcel } from './parcel.ts';

/** What is known of the backends at one address. */
interface Standing {
  healthy: boolean;
  state: OperatorState;
}

export class ToldCluster {
  settings: ClusterSettings;
  /** Backends by address. */
  standings: Map<AddressKey, Standing> = new Map();

  constructor(settings: ClusterSettings) {
    this.settings = settings;
  }

  /** Whether anybody may have a new flow. */
  get serves(): boolean {
    return this.#isAvailable || this.#failsOpen;
  }

  /** What the configuration wants of a flow that is on this backend. */
  fateOf(backend: Address): Fate {
    const { onBackendDown, onBackendRemoved } = this.settings;
    const standing = this.standings.get(addressKey(backend));
    const after = { pin: 'keep', rebind: 'rebind', close: 'close' } as const;
    if (standing === undefined || standing.state === 'disabled') return after[onBackendRemoved];
    // A drain that is over ends flows even where they are pinned.
    if (standing.state === 'drained') return onBackendRemoved === 'rebind' ? 'rebind' : 'close';
    return standing.healthy || this.#failsOpen ? 'keep' : after[onBackendDown];
  }

  /** A backend that stays keeps its standing. */
  replace(settings: ClusterSettings): void {
    const before = this.standings;
    this.settings = settings;
    this.standings = new Map();
    for (const { address } of settings.backends) {
      const key = addressKey(address);
      this.standings.set(key, before.get(key) ?? { healthy: true, state: 'active' });
    }
  }

  get #isAvailable(): boolean {
    for (const { healthy, state } of this.standings.values())
      if (healthy && state === 'active') return true;
    return false;
  }

  get #failsOpen(): boolean {
    if (this.#isAvailable || this.settings.health?.failOpen === false) return false;
    for (const { state } of this.standings.values()) if (state === 'active') return true;
    return false;
  }
}

export interface ToldListener {
  readonly id: ListenerId;
  config: ListenerConfig;
  /** It admits nobody any more. */
  isDraining: boolean;
  /** Its socket closes with the turn, or has. */
  isClosed: boolean;
  /** Flows that take requests, by client. */
  readonly flows: Map<AddressKey, Line>;
  /** All that have not closed. */
  readonly lines: Set<Line>;
  /** Replies that wait for room. */
  queue: Parcel[] | undefined;
}

export class ToldPlane {
  readonly listeners: Map<ListenerId, ToldListener> = new Map();
  readonly #clusters = new Map<string, ToldCluster>();
  readonly #hosts: readonly Address[];
  #generation = 0;
  #isStopping = false;
  #loopsChanged = false;
  #ownListeners: readonly ListenerConfig[] = [];
  #ownBackends: ReadonlySet<AddressKey> = new Set();

  /** `hosts` are the addresses of the plane's machine. */
  constructor(hosts: readonly Address[]) {
    this.#hosts = hosts;
  }

  /** Where a listener leads now. */
  clusterOf({ config }: ToldListener): ToldCluster | undefined {
    return config.cluster === undefined ? undefined : this.#clusters.get(config.cluster);
  }

  obey({ generation, directive }: GeneratedDirective): void {
    if (generation < this.#generation) return;
    this.#generation = generation;
    this.#listener(directive);
    this.#cluster(directive);
    if (directive.kind !== 'Drain' && directive.kind !== 'Stop') return;
    this.#isStopping = true;
    for (const listener of this.listeners.values()) listener.isDraining = true;
  }

  /** The turn is over: what is ours and what is not is known anew. */
  flushed(): void {
    if (!this.#loopsChanged) return;
    this.#loopsChanged = false;
    // One that was given up is closed, and is not leaving.
    const staying = [...this.listeners.values()].filter(
      ({ isClosed, isDraining }) => !isClosed || !isDraining,
    );
    this.#ownListeners = staying.map(({ config }) => config);
    const backends = [...this.#clusters.values()].flatMap(({ settings }) => settings.backends);
    this.#ownBackends = new Set(backends.map(({ address }) => endpointKey(unmap(address))));
  }

  /** Whether an answer to this source would come back to us. */
  circles(src: Address, local: Address | undefined, cluster: ToldCluster): boolean {
    const isOurs = this.#ownListeners.some((one) => this.#mayBe(one, src, local));
    if (isOurs) return true;
    return !cluster.settings.allowBackendAsClient && this.#ownBackends.has(endpointKey(src));
  }

  #listener(directive: Directive): void {
    if (directive.kind === 'AddListener' && !this.#isStopping) {
      const { listener: id, config } = directive;
      this.#loopsChanged = true;
      const flows = { flows: new Map(), lines: new Set<Line>(), queue: undefined };
      this.listeners.set(id, { id, config, isDraining: false, isClosed: false, ...flows });
    } else if (directive.kind === 'UpdateListener') {
      const listener = this.listeners.get(directive.listener);
      if (listener !== undefined) listener.config = directive.config;
      this.#loopsChanged = true;
    } else if (directive.kind === 'RemoveListener') {
      const listener = this.listeners.get(directive.listener);
      if (listener !== undefined) listener.isDraining = true;
      this.#loopsChanged = true;
    }
  }

  #cluster(directive: Directive): void {
    switch (directive.kind) {
      case 'SetCluster': {
        const { settings } = directive;
        const cluster = this.#clusters.get(settings.cluster) ?? new ToldCluster(settings);
        cluster.replace(settings);
        this.#clusters.set(settings.cluster, cluster);
        this.#loopsChanged = true;
        return;
      }
      case 'RemoveCluster': {
        const cluster = this.#clusters.get(directive.cluster);
        cluster?.standings.clear();
        this.#clusters.delete(directive.cluster);
        this.#loopsChanged = true;
        return;
      }
      case 'SetHealth':
      case 'SetBackendState': {
        const cluster = this.#clusters.get(directive.cluster);
        const standing = cluster?.standings.get(addressKey(directive.address));
        if (standing === undefined) return;
        if (directive.kind === 'SetHealth') standing.healthy = directive.healthy;
        else standing.state = directive.state;
        return;
      }
      default:
        return;
    }
  }

  /** A wildcard listener answers from each address of its machine. */
  #mayBe({ address, ipv6Only }: ListenerConfig, src: Address, local: Address | undefined): boolean {
    const bound = unmap(address);
    if (bound.port !== src.port) return false;
    if (!isUnspecified(bound)) return endpointKey(bound) === endpointKey(src);
    if (bound.family !== src.family && (bound.family === 4 || ipv6Only)) return false;
    const isHere = (one: Address): boolean => sameIp({ ...one, scope: 0 }, { ...src, scope: 0 });
    return isLoopback(src) || (local !== undefined && isHere(local)) || this.#hosts.some(isHere);
  }
}

/** Whether an operator keeps a source out: the longest block decides, and of two equal ones that which denies. */
export function isDenied({ rates }: ClusterSettings, src: Address): boolean {
  const { allow, deny } = rates;
  if (allow.length + deny.length === 0) return false;
  const denied = longest(deny, src);
  const allowed = longest(allow, src);
  return denied < 0 && allowed < 0 ? allow.length > 0 : denied >= allowed;
}

/** Whether one more flow of this source is over a limit on sources; `leaving` is no more. */
export function isCrowded(
  { lines }: ToldListener,
  settings: ClusterSettings,
  src: Address,
  leaving?: Line,
): boolean {
  const { cluster, maxFlowsPerIp, maxFlowsPerSubnet } = settings;
  if (maxFlowsPerIp === 0 && maxFlowsPerSubnet === 0) return false;
  const bits = prefixOf(settings, src);
  const own = { ...src, scope: 0 };
  const others = [...lines].filter((line) => line !== leaving && line.terms.cluster === cluster);
  const ofIp = others.filter(({ client }) => sameIp({ ...client, scope: 0 }, own)).length;
  const ofSubnet = others.filter(({ client, terms }) => {
    return prefixOf(terms, client) === bits && isIn({ base: src, bits }, client);
  }).length;
  if (maxFlowsPerIp !== 0 && ofIp >= maxFlowsPerIp) return true;
  return maxFlowsPerSubnet !== 0 && ofSubnet >= maxFlowsPerSubnet;
}

function prefixOf(settings: ClusterSettings, { family }: Address): number {
  return family === 4 ? settings.subnetPrefixIpv4 : settings.subnetPrefixIpv6;
}

function longest(blocks: readonly Cidr[], src: Address): number {
  let bits = -1;
  for (const block of blocks) if (isIn(block, src)) bits = Math.max(bits, block.bits);
  return bits;
}

function isIn({ base, bits }: Cidr, address: Address): boolean {
  if (base.family !== address.family) return false;
  return (
    ((base.a ^ address.a) & prefixMask(bits)) === 0 &&
    ((base.b ^ address.b) & prefixMask(bits - 32)) === 0 &&
    ((base.c ^ address.c) & prefixMask(bits - 64)) === 0 &&
    ((base.d ^ address.d) & prefixMask(bits - 96)) === 0
  );
}

/** Without the zone, which a listener's address need not say. */
function endpointKey(address: Address): AddressKey {
  return address.scope === 0 ? addressKey(address) : addressKey({ ...address, scope: 0 });
}
