/** Worlds and what is done to them as they may stand in a file: every field checked. */
import type { ScriptEntry, HostName, WorldAction } from './actions.ts';
import {
  ADDRESS,
  COMMAND,
  CONFIG,
  COUNT,
  DURATION,
  HASH,
  INSTANT,
  SIZE,
  WORD_MAX,
} from './config-shapes.ts';
import type {
  BurstLoss,
  Corrupting,
  Delayed,
  LinkFaults,
  Mtu,
  Rate,
  Ratio,
  Span,
} from './faults.ts';
import type { Latency } from './latency.ts';
import type { NatSettings } from './nat.ts';
import type { HostShape, OsFaults, TimerFaults } from './os-faults.ts';
import {
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
import {
  PHASES,
  type BackendManner,
  type BackendSpec,
  type ClientHostSpec,
  type ClientSpec,
  type PhaseTimes,
  type ProxySpec,
  type WorkersSpec,
  type WorldSpec,
} from './spec.ts';
import type { Seed } from '../seed.ts';

export const SEED: Check<Seed> = objectOf<Seed>({
  high: whole(0, WORD_MAX),
  low: whole(0, WORD_MAX),
});

const RATIO: Check<Ratio> = objectOf<Ratio>({
  numerator: whole(0, WORD_MAX),
  denominator: whole(1, WORD_MAX),
});

const SPAN: Check<Span> = objectOf<Span>({ low: DURATION, high: DURATION });

const LATENCY: Check<Latency> = oneOfKinds<Latency>({
  constant: { time: DURATION },
  uniform: { low: DURATION, high: DURATION },
  'log-normal': { median: DURATION, spread: whole(0, 64) },
});

const DELAYED: Check<Delayed> = objectOf<Delayed>({ ratio: RATIO, by: SPAN });

const LINK: FieldChecks<LinkFaults> = {
  latency: LATENCY,
  loss: maybe(
    objectOf<BurstLoss>({ toBad: RATIO, toGood: RATIO, lossGood: RATIO, lossBad: RATIO }),
  ),
  duplication: maybe(DELAYED),
  reordering: maybe(DELAYED),
  corruption: maybe(
    objectOf<Corrupting>({
      ratio: RATIO,
      caught: RATIO,
      ways: listOf(word('flip', 'cut', 'extend'), 1),
    }),
  ),
  mtu: maybe(objectOf<Mtu>({ bytes: COUNT, icmp: flag })),
  rate: maybe(objectOf<Rate>({ bytesPerSecond: whole(1, 2 ** 40), queueBytes: SIZE })),
  partitioned: flag,
  held: flag,
};

const OS: FieldChecks<OsFaults> = {
  descriptors: maybe(SIZE),
  ephemeralPorts: maybe(COUNT),
  occupied: listOf(ADDRESS),
  absent: listOf(ADDRESS),
  sendRate: maybe(SIZE),
  sendBuffer: maybe(SIZE),
  receiveBuffer: maybe(SIZE),
  datagramBytes: maybe(COUNT),
  noBuffers: maybe(RATIO),
  upstreamStalls: maybe(RATIO),
  listenerStalls: maybe(RATIO),
  lateFailures: maybe(RATIO),
  refusalDelay: maybe(DURATION),
  wakeLatency: maybe(DURATION),
  timer: maybe(objectOf<TimerFaults>({ early: DURATION, late: DURATION, tick: DURATION })),
  standstill: maybe(word('process', 'clock')),
};

const TCP = word('accept', 'refuse', 'swallow');

const MANNER: FieldChecks<BackendManner> = {
  open: flag,
  answers: whole(0, 64),
  delay: DURATION,
  elsewhere: flag,
  answerBytes: COUNT,
  tcp: maybe(TCP),
};

const NAME = text(/^[\w-]{1,64}$/, 'a name of letters, digits and hyphens');

type Extra = Omit<HostShape, 'name' | 'addresses'>;

/** What a host may say of itself beside its name and addresses. */
const EXTRA: { readonly [Key in keyof Extra]: Check<Extra[Key] | undefined> } = {
  descriptors: maybe(SIZE),
  ephemeralPorts: maybe(objectOf<HostShape['ephemeralPorts']>({ low: COUNT, high: COUNT })),
  socketBuffer: maybe(SIZE),
  batch: maybe(whole(1, 65_535)),
  localAddress: maybe(flag),
  receiveBudget: maybe(whole(1, 65_535)),
  origin: maybe(INSTANT),
};

const PROXY: Check<ProxySpec> = objectOf<ProxySpec>({
  shape: objectOf<ProxySpec['shape']>({ name: NAME, addresses: listOf(ADDRESS, 1), ...EXTRA }),
  config: CONFIG,
  randomSeed: HASH,
  planeDelay: maybe(SPAN),
  workers: maybe(objectOf<WorkersSpec>({ count: whole(2, 64), steer: word('tuple', 'source') })),
});

const SIDES = word('endpoint-independent', 'endpoint-dependent');

const NAT: Check<NatSettings> = objectOf<NatSettings>({
  ip: ADDRESS,
  ports: objectOf<NatSettings['ports']>({ first: whole(1, 65_535), count: whole(1, 65_535) }),
  idle: DURATION,
  mapping: SIDES,
  filtering: SIDES,
  rebinding: RATIO,
});

export const SPEC: Check<WorldSpec> = objectOf<WorldSpec>({
  phases: objectOf<PhaseTimes>({
    calm: DURATION,
    chaos: DURATION,
    heal: DURATION,
    drain: DURATION,
  }),
  link: objectOf<LinkFaults>(LINK),
  proxies: listOf(PROXY, 1),
  nats: listOf(NAT),
  clientHosts: listOf(objectOf<ClientHostSpec>({ ips: listOf(ADDRESS, 1), nat: maybe(COUNT) }), 1),
  clients: listOf(objectOf<ClientSpec>({ host: COUNT, address: ADDRESS }), 1, 65_535),
  backends: listOf(
    objectOf<BackendSpec>({ address: ADDRESS, manner: objectOf<BackendManner>(MANNER) }),
    1,
  ),
  withinTolerance: flag,
});

const HOST: Check<HostName> = objectOf<HostName>({
  role: word('proxy', 'client', 'backend'),
  number: COUNT,
});

/** Populations are named by number, modulo their size: any number is somebody. */
const ACTION: Check<WorldAction> = oneOfKinds<WorldAction>({
  Send: { client: COUNT, proxy: COUNT, listener: COUNT, bytes: COUNT },
  Reopen: { client: COUNT },
  Spoof: { host: COUNT, src: ADDRESS, proxy: COUNT, listener: COUNT, bytes: COUNT },
  Remap: { client: COUNT },
  Behave: { backend: COUNT, manner: someOf<BackendManner>(MANNER) },
  Power: { host: HOST, on: flag },
  LinkFault: {
    host: HOST,
    place: word('up', 'down', 'loopback'),
    faults: someOf<LinkFaults>(LINK),
    lasts: DURATION,
  },
  Cut: { from: HOST, to: HOST, lasts: DURATION },
  HostFault: { proxy: COUNT, faults: someOf<OsFaults>(OS), lasts: DURATION },
  Order: { proxy: COUNT, command: COMMAND },
  Crash: { proxy: COUNT },
  Start: { proxy: COUNT, config: CONFIG },
  Begin: { phase: word(...PHASES) },
});

export const ENTRY: Check<ScriptEntry> = objectOf<ScriptEntry>({ at: INSTANT, action: ACTION });
