/** The clusters of a data plane: their settings, whom they let in, and the backends that new flows are given. */
import { present } from './assert.ts';
import { BackendSet } from './balancing/backend-set.ts';
import { CLUSTER_DEFAULTS, type ClusterSettings, type ListenerConfig } from './config.ts';
import { NO_CLUSTER, type ClusterConfig } from './contract.ts';
import type { Directive } from './directives.ts';
import type { Hash64 } from './hash.ts';
import type { TableSeed } from './keyed-hash.ts';
import { LastingSums } from './lasting-sums.ts';
import type { Random } from './random.ts';
import { SourcePolicer } from './source-policer.ts';
import type { SourcesUser } from './upstream-sources.ts';

export interface Cluster extends SourcesUser {
  /** Never another cluster's while this one is there, or one of its flows. */
  readonly number: number;
  readonly backends: BackendSet;
  readonly policer: SourcePolicer;
}

/** Of a listener that leads to no cluster that is known. */
const NOWHERE: ClusterConfig & Pick<ClusterSettings, 'rates'> = {
  ...NO_CLUSTER,
  rates: CLUSTER_DEFAULTS.rates,
};

export class Clusters {
  private readonly placementSeed: Hash64;
  private readonly random: Random;
  private readonly tableSeed: TableSeed;
  /** By number; one that was removed stays until its last flow has ended. */
  private readonly list: (Cluster | undefined)[] = [];
  private readonly flows: number[] = [];
  private readonly freeNumbers: number[] = [];
  private readonly byName = new Map<string, Cluster>();
  private readonly failOpen = new LastingSums(
    () => ({ selections: 0 }),
    (sum, { selections }) => {
      sum.selections += selections;
    },
  );
  private counting = false;
  private answering = false;

  constructor(placementSeed: Hash64, random: Random, tableSeed: TableSeed) {
    this.placementSeed = placementSeed;
    this.random = random;
    this.tableSeed = tableSeed;
  }

  /**
   * A new cluster, or new settings for the one of this name; its policy starts afresh, its backends keep their load and
   * their health, and sources what they have spent of rates that stay.
   */
  set(settings: ClusterSettings): Cluster {
    const { loadBalancing, loadMetric, backends } = settings;
    const failOpen = settings.health?.failOpen ?? true;
    // What is known of an object must be known of one cluster only, whoever else was configured with it.
    const own = backends.map((backend) => ({ ...backend }));
    const known = this.byName.get(settings.cluster);
    if (known === undefined) {
      const { placementSeed, random } = this;
      const policy = { loadBalancing, loadMetric, random, placementSeed };
      const set = new BackendSet({ ...policy, backends: own, failOpen, inSlices: true });
      const policer = new SourcePolicer(settings, this.tableSeed);
      const number = this.freeNumbers.pop() ?? this.list.length;
      this.failOpen.begin(settings.cluster);
      this.place({ number, settings, turns: undefined, backends: set, policer });
    } else {
      known.backends.setFailOpen(failOpen);
      known.backends.setPolicy(loadBalancing, loadMetric);
      known.backends.setBackends(own);
      known.policer.configure(settings);
      this.place({ ...known, settings, turns: undefined });
    }
    this.recount();
    return present(this.byName.get(settings.cluster), 'the cluster was placed');
  }

  /** It has no backend any more. Undefined when it was not known, and is nobody's. */
  remove(name: string): Cluster | undefined {
    const known = this.byName.get(name);
    if (known === undefined) return undefined;
    this.byName.delete(name);
    known.backends.setBackends([]);
    this.failOpen.keep(name, { selections: known.backends.failOpenSelections });
    this.forgetIfIdle(known);
    this.recount();
    return known;
  }

  /** A flow was admitted to this cluster. */
  flowOpened({ number }: Cluster): void {
    this.flows[number] = (this.flows[number] ?? 0) + 1;
  }

  flowClosed(cluster: Cluster): void {
    this.flows[cluster.number] = (this.flows[cluster.number] ?? 0) - 1;
    if (this.list[cluster.number] !== this.byName.get(cluster.settings.cluster)) {
      this.forgetIfIdle(cluster);
    }
  }

  /** How long a probe took. A cluster that is not known is nobody's. */
  probed({ cluster, address, took }: Extract<Directive, { kind: 'SetProbeTime' }>): void {
    this.byName.get(cluster)?.backends.probed(address, took);
  }

  /** Who may serve. The cluster of which that is news; undefined when it is not, or nobody's. */
  learn(news: Extract<Directive, { kind: 'SetHealth' | 'SetBackendState' }>): Cluster | undefined {
    const cluster = this.byName.get(news.cluster);
    const isNews =
      news.kind === 'SetHealth'
        ? cluster?.backends.setHealth(news.address, news.healthy)
        : cluster?.backends.setState(news.address, news.state);
    return isNews === true ? cluster : undefined;
  }

  /** Goes on with what changes left to do, for about `steps` steps. Says whether more is left. */
  build(steps: number): boolean {
    let left = steps;
    for (const { backends } of this.byName.values()) {
      if (left <= 0) return true;
      left = backends.build(left);
    }
    return left <= 0;
  }

  /** The backends of a cluster, for readers; undefined when there is no such cluster. */
  backendsOf(cluster: string): BackendSet | undefined {
    return this.byName.get(cluster)?.backends;
  }

  /** Whether any cluster compares backends by datagrams forwarded: else nobody need count them. */
  get countRequests(): boolean {
    return this.counting;
  }

  /** Whether any cluster's requests are answered, so that missing answers tell something: else nobody need count them. */
  get countAnswers(): boolean {
    return this.answering;
  }

  /** `BackendSet.failOpenSelections` by cluster, those included that are no more. */
  get failOpenSelections(): ReadonlyMap<string, { readonly selections: number }> {
    return this.failOpen.including(
      this.all.map(({ settings, backends }) => {
        return [settings.cluster, { selections: backends.failOpenSelections }] as const;
      }),
    );
  }

  get all(): readonly Cluster[] {
    return [...this.byName.values()];
  }

  /** Of a live flow: there although it was removed. */
  at(number: number): Cluster {
    return present(this.list[number], 'clusters keep their numbers');
  }

  /** The cluster this listener leads to, once there is one of that name. */
  of(listener: ListenerConfig): Cluster | undefined {
    return listener.cluster === undefined ? undefined : this.byName.get(listener.cluster);
  }

  /** What a flow machine must know: timeouts from its listener, the rest from its cluster (spec §1.7). */
  configFor(listener: ListenerConfig): ClusterConfig {
    const settings = this.of(listener)?.settings ?? NOWHERE;
    const frontTimeout = listener.frontTimeout ?? settings.frontTimeout ?? NO_CLUSTER.frontTimeout;
    const backTimeout = listener.backTimeout ?? settings.backTimeout ?? NO_CLUSTER.backTimeout;
    const { datagramsPerSecond, datagramsBurst } = settings.rates;
    return {
      cluster: settings.cluster,
      affinityWithPort: settings.affinityWithPort,
      responses: settings.responses,
      requests: settings.requests,
      frontTimeout,
      backTimeout,
      sendProxyProtocol: settings.sendProxyProtocol,
      proxyProtocolEveryDatagram: settings.proxyProtocolEveryDatagram,
      rejectClientHeader: settings.rejectClientHeader,
      maxFlowsPerIp: settings.maxFlowsPerIp,
      maxFlowsPerSubnet: settings.maxFlowsPerSubnet,
      subnetPrefixIpv4: settings.subnetPrefixIpv4,
      subnetPrefixIpv6: settings.subnetPrefixIpv6,
      responsesPerRequest: settings.responsesPerRequest,
      requestsLinger: settings.requestsLinger,
      lateReplyGrace: settings.lateReplyGrace,
      forwardEmptyDatagrams: settings.forwardEmptyDatagrams,
      amplification: settings.amplification,
      datagramsPerSecond,
      datagramsBurst,
    };
  }

  private recount(): void {
    this.counting = false;
    this.answering = false;
    for (const { settings } of this.byName.values()) {
      this.counting ||= settings.loadMetric === 'REQUESTS';
      this.answering ||= settings.exchange === 'request-response';
    }
  }

  private forgetIfIdle({ number }: Cluster): void {
    if ((this.flows[number] ?? 0) > 0) return;
    this.list[number] = undefined;
    this.freeNumbers.push(number);
  }

  private place(cluster: Cluster): void {
    this.list[cluster.number] = cluster;
    this.byName.set(cluster.settings.cluster, cluster);
  }
}
