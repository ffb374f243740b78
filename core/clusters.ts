/** The clusters of a data plane: their settings, whom they let in, and the backends that new flows are given. */
import { present } from './assert.ts';
import { BackendSet } from './balancing/backend-set.ts';
import { CLUSTER_DEFAULTS, type ClusterSettings, type ListenerConfig } from './config.ts';
import { NO_CLUSTER, type ClusterConfig } from './contract.ts';
import type { Directive } from './directives.ts';
import type { Hash64 } from './hash.ts';
import type { TableSeed } from './keyed-hash.ts';
import type { Random } from './random.ts';
import { SourcePolicer } from './source-policer.ts';

export interface Cluster {
  /** Its place in the order of arrival; never another cluster's. */
  readonly number: number;
  readonly settings: ClusterSettings;
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
  private readonly list: Cluster[] = [];
  private readonly byName = new Map<string, Cluster>();
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
      const set = new BackendSet({ ...policy, backends: own, failOpen });
      const policer = new SourcePolicer(settings, this.tableSeed);
      this.place({ number: this.list.length, settings, backends: set, policer });
    } else {
      known.backends.setFailOpen(failOpen);
      known.backends.setPolicy(loadBalancing, loadMetric);
      known.backends.setBackends(own);
      known.policer.configure(settings);
      this.place({ ...known, settings });
    }
    this.counting = this.list.some((cluster) => cluster.settings.loadMetric === 'REQUESTS');
    this.answering = this.list.some((cluster) => cluster.settings.exchange === 'request-response');
    return present(this.byName.get(settings.cluster), 'the cluster was placed');
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

  get all(): readonly Cluster[] {
    return this.list;
  }

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

  private place(cluster: Cluster): void {
    this.list[cluster.number] = cluster;
    this.byName.set(cluster.settings.cluster, cluster);
  }
}
