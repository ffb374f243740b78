/** Configurations and commands as they may stand in a file: every field checked, within bounds that no run is hurt by. */
import type { Address } from '../../core/address.ts';
import type { AmplificationLimits } from '../../core/amplification.ts';
import type { Cidr } from '../../core/cidr.ts';
import type { ClusterKnobs, Command } from '../../core/commands.ts';
import {
  LOAD_BALANCINGS,
  type AccessLogSettings,
  type ClusterSettings,
  type Config,
  type ListenerConfig,
  type SourceRates,
} from '../../core/config.ts';
import type { Backend } from '../../core/contract.ts';
import type { FlowCursor, FlowFilter } from '../../core/flow-commands.ts';
import type { Hash64 } from '../../core/hash.ts';
import type { HealthSettings } from '../../core/health/settings.ts';
import type { Duration, Instant } from '../../core/time.ts';
import {
  bytes,
  flag,
  listOf,
  maybe,
  objectOf,
  oneOfKinds,
  someOf,
  text,
  whole,
  word,
  type Check,
  type FieldChecks,
} from './shape.ts';

/** A day: sums of such stay exact. */
const TIME_MAX = 86_400_000_000;
export const WORD_MAX = 0xffff_ffff;
const WORD_MIN = -0x8000_0000;

export const DURATION: Check<Duration> = whole<Duration>(0, TIME_MAX);
export const INSTANT: Check<Instant> = whole<Instant>(0, TIME_MAX);
/** Of whatever there may be many of. */
export const COUNT: Check<number> = whole(0, 65_535);
const PORT = COUNT;
/** Of memory that is asked for, or passes. */
export const SIZE: Check<number> = whole(0, 1_073_741_824);
const NAME: Check<string> = text(/^.{0,255}$/su, 'a text of at most 255 characters');

export const ADDRESS: Check<Address> = objectOf<Address>({
  family: word<4 | 6>(4, 6),
  a: whole(WORD_MIN, WORD_MAX),
  b: whole(WORD_MIN, WORD_MAX),
  c: whole(WORD_MIN, WORD_MAX),
  d: whole(WORD_MIN, WORD_MAX),
  port: PORT,
  scope: whole(0, WORD_MAX),
});

export const HASH: Check<Hash64> = objectOf<Hash64>({
  high: whole(WORD_MIN, WORD_MAX),
  low: whole(WORD_MIN, WORD_MAX),
});

const BACKEND: Check<Backend> = objectOf<Backend>({
  id: NAME,
  address: ADDRESS,
  weight: whole(0, 255),
  backup: flag,
});

const CIDR: Check<Cidr> = objectOf<Cidr>({ base: ADDRESS, bits: whole(0, 128) });

const RATES: Check<SourceRates> = objectOf<SourceRates>({
  newFlowsPerSecond: SIZE,
  newFlowsBurst: SIZE,
  datagramsPerSecond: SIZE,
  datagramsBurst: SIZE,
  columns: word(...Array.from({ length: 21 }, (_, bits) => 2 ** bits)),
  allow: listOf(CIDR),
  deny: listOf(CIDR),
});

const HEALTH: Check<HealthSettings> = objectOf<HealthSettings>({
  mode: word('HEALTH_OFF', 'TCP_PROBE', 'UDP_PROBE'),
  tcpPort: maybe(PORT),
  rise: whole(1, 65_535),
  fall: whole(1, 65_535),
  failOpen: flag,
  udpProbePayload: maybe(bytes(65_535)),
  expectReply: flag,
  probeInterval: DURATION,
  probeTimeout: DURATION,
});

const ON_LOSS = word('pin', 'rebind', 'close');

const KNOBS: FieldChecks<ClusterKnobs> = {
  cluster: NAME,
  affinityWithPort: flag,
  responses: COUNT,
  requests: COUNT,
  frontTimeout: maybe(DURATION),
  backTimeout: maybe(DURATION),
  sendProxyProtocol: flag,
  proxyProtocolEveryDatagram: flag,
  rejectClientHeader: flag,
  maxFlowsPerIp: COUNT,
  maxFlowsPerSubnet: COUNT,
  subnetPrefixIpv4: whole(0, 32),
  subnetPrefixIpv6: whole(0, 128),
  responsesPerRequest: flag,
  requestsLinger: flag,
  lateReplyGrace: DURATION,
  forwardEmptyDatagrams: flag,
  amplification: objectOf<AmplificationLimits>({ factor: COUNT, floor: COUNT }),
  loadBalancing: word(...LOAD_BALANCINGS),
  loadMetric: word('CONNECTIONS', 'REQUESTS', 'CONNECTION_TIME'),
  allowBackendAsClient: flag,
  health: maybe(HEALTH),
  exchange: maybe(word('request-response', 'one-way')),
  passive: maybe(flag),
  onBackendDown: ON_LOSS,
  onBackendRemoved: ON_LOSS,
  upstreamSources: listOf(ADDRESS),
  rates: RATES,
};

const CLUSTER: Check<ClusterSettings> = objectOf<ClusterSettings>({
  ...KNOBS,
  backends: listOf(BACKEND),
});

const PATCH: FieldChecks<Omit<ListenerConfig, 'address' | 'cluster'>> = {
  frontTimeout: maybe(DURATION),
  backTimeout: maybe(DURATION),
  maxRxDatagramSize: COUNT,
  maxFlows: COUNT,
  ipv6Only: flag,
  receiveBuffer: maybe(SIZE),
  sendBuffer: maybe(SIZE),
  bindRetry: maybe(DURATION),
};

const LISTENER: Check<ListenerConfig> = objectOf<ListenerConfig>({
  ...PATCH,
  address: ADDRESS,
  cluster: maybe(NAME),
});

const ACCESS_LOG = objectOf<AccessLogSettings>({ oneIn: SIZE, linesPerSecond: SIZE });

export const CONFIG: Check<Config> = objectOf<Config>({
  listeners: listOf(LISTENER),
  clusters: listOf(CLUSTER),
  grace: DURATION,
  accessLog: maybe(ACCESS_LOG),
});

const AT_LISTENER = { address: ADDRESS };
const OF_CLUSTER = { cluster: NAME, address: ADDRESS };

export const COMMAND: Check<Command> = oneOfKinds<Command>({
  AddListener: { config: LISTENER },
  UpdateListener: { ...AT_LISTENER, patch: someOf(PATCH) },
  RemoveListener: AT_LISTENER,
  ActivateListener: AT_LISTENER,
  DeactivateListener: AT_LISTENER,
  AddFrontend: OF_CLUSTER,
  RemoveFrontend: OF_CLUSTER,
  AddCluster: { settings: objectOf<ClusterKnobs>(KNOBS) },
  RemoveCluster: { cluster: NAME },
  AddBackend: { cluster: NAME, backend: BACKEND },
  RemoveBackend: OF_CLUSTER,
  SetWeight: { ...OF_CLUSTER, weight: COUNT },
  SetBackends: { cluster: NAME, backends: listOf(BACKEND) },
  SetGrace: { grace: DURATION },
  SetAccessLog: { settings: maybe(ACCESS_LOG) },
  DrainBackend: { ...OF_CLUSTER, deadline: maybe(DURATION), force: maybe(flag) },
  UndrainBackend: OF_CLUSTER,
  DisableBackend: { ...OF_CLUSTER, force: maybe(flag) },
  ListFlows: {
    filter: objectOf<FlowFilter>({
      listener: maybe(ADDRESS),
      cluster: maybe(NAME),
      backend: maybe(ADDRESS),
      source: maybe(CIDR),
    }),
    limit: COUNT,
    from: maybe(objectOf<FlowCursor>({ listener: COUNT, slot: SIZE })),
    slots: maybe(SIZE),
  },
  ShowFlow: { flow: NAME },
  KillFlow: { flow: NAME },
  Why: { listener: ADDRESS, client: ADDRESS, local: maybe(ADDRESS) },
  Preview: { config: CONFIG },
  Reload: { config: CONFIG },
  SoftStop: {},
  HardStop: {},
  Status: {},
});
