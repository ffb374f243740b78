/**
 * Everything that goes wrong in a world, as data: a family is one kind of fault, and draws how bad an episode of it is.
 * `sim/world/chaos.ts` says when there is one. Ratios are whole numbers, and no draw depends on another's outcome.
 */
import { present } from '../../core/assert.ts';
import { microseconds, milliseconds, type Duration } from '../../core/time.ts';
import type { HostName, WorldAction } from './actions.ts';
import type { Actor } from './actor.ts';
import type { LinkFaults, Ratio, Span } from './faults.ts';
import type { OsFaults } from './os-faults.ts';
import type { BackendManner, ProxySpec } from './spec.ts';
import { pick } from './world.ts';

/** What begins an episode, and what ends it where that does not end by itself. */
export interface Episode {
  readonly begin: readonly WorldAction[];
  readonly end: readonly WorldAction[];
}

export type Family = (actor: Actor, lasts: Duration) => Episode;

export const LINK_FAMILIES = [
  'slow',
  'loss',
  'duplication',
  'reordering',
  'corruption',
  'narrow',
  'congestion',
  'partition',
  'hold',
] as const;

/** Nothing from one host to another: with `split` neither back. */
export const CUT_FAMILIES = ['cut', 'split'] as const;

/** All that a proxy has to bear. */
export const HOST_FAMILIES = [
  'descriptors',
  'ports',
  'occupied',
  'absent',
  'jam',
  'deaf',
  'lag',
  'small',
  'no-buffers',
  'stalls',
  'listener-stalls',
  'late-failures',
  'refusal-delay',
  'timers',
  'standstill',
  'clock',
] as const;

export const BACKEND_FAMILIES = ['crash', 'mute', 'twice', 'late', 'elsewhere', 'large'] as const;

/** A backend's machine goes off, and comes back. */
export const POWER_FAMILIES = ['power'] as const;

/** Another port for a client: from its NAT, or of its own. */
export const CLIENT_FAMILIES = ['remap', 'reopen'] as const;

type LinkFamily = (typeof LINK_FAMILIES)[number];
type HostFamily = (typeof HOST_FAMILIES)[number];
type BackendFamily = (typeof BACKEND_FAMILIES)[number];
type OtherFamily = (typeof CUT_FAMILIES | typeof POWER_FAMILIES | typeof CLIENT_FAMILIES)[number];

export type FamilyName = LinkFamily | HostFamily | BackendFamily | OtherFamily;

type Draw<Faults> = (actor: Actor) => Partial<Faults>;

/** One direction of one host's link. */
const LINK: Readonly<Record<LinkFamily, Draw<LinkFaults>>> = {
  slow: ({ random }) => {
    const median = milliseconds(random.between('median', 2, 40));
    return { latency: { kind: 'log-normal', median, spread: random.between('spread', 4, 24) } };
  },
  loss: ({ random }) => ({
    loss: {
      toBad: { numerator: 1, denominator: random.between('to bad', 4, 40) },
      toGood: { numerator: 1, denominator: random.between('to good', 2, 12) },
      lossGood: { numerator: 0, denominator: 1 },
      lossBad: { numerator: random.between('of four', 2, 4), denominator: 4 },
    },
  }),
  duplication: ({ random }) => ({
    duplication: { ratio: oneIn(random.between('one in', 1, 8)), by: upTo(5) },
  }),
  reordering: ({ random }) => ({
    reordering: { ratio: oneIn(random.between('one in', 2, 8)), by: upTo(30) },
  }),
  corruption: ({ random }) => ({
    corruption: {
      ratio: oneIn(random.between('one in', 2, 10)),
      caught: { numerator: random.between('caught', 0, 4), denominator: 4 },
      ways: random.pick('ways', [['flip'], ['cut'], ['extend'], ['flip', 'cut', 'extend']]),
    },
  }),
  narrow: ({ random }) => ({
    mtu: { bytes: random.between('mtu', 68, 300), icmp: random.chance('icmp', 1, 2) },
  }),
  congestion: ({ random }) => ({
    rate: {
      bytesPerSecond: random.between('rate', 2_000, 40_000),
      queueBytes: random.between('queue', 300, 4_000),
    },
  }),
  partition: () => ({ partitioned: true }),
  hold: () => ({ held: true }),
};

/** The machine of a proxy. */
const HOST: Readonly<Record<HostFamily, Draw<OsFaults>>> = {
  descriptors: ({ random }) => ({ descriptors: random.between('descriptors', 1, 12) }),
  ports: ({ random }) => ({ ephemeralPorts: random.between('ports', 0, 8) }),
  occupied: (actor) => ({
    occupied: [actor.random.pick('listener', firstProxy(actor).config.listeners).address],
  }),
  absent: (actor) => ({
    absent: [actor.random.pick('address', firstProxy(actor).shape.addresses)],
  }),
  jam: ({ random }) => ({
    sendRate: random.pick('rate', [0, 0, 3_000, 20_000]),
    sendBuffer: random.between('buffer', 600, 4_000),
  }),
  deaf: ({ random }) => ({
    receiveBuffer: random.between('buffer', 1, 3_000),
    wakeLatency: milliseconds(random.between('latency', 1, 30)),
  }),
  lag: ({ random }) => ({ wakeLatency: milliseconds(random.between('latency', 1, 30)) }),
  small: ({ random }) => ({ datagramBytes: random.between('bytes', 30, 300) }),
  'no-buffers': ({ random }) => ({ noBuffers: oneIn(random.between('one in', 1, 6)) }),
  stalls: ({ random }) => ({ upstreamStalls: oneIn(random.between('one in', 2, 20)) }),
  'listener-stalls': ({ random }) => ({ listenerStalls: oneIn(random.between('one in', 8, 40)) }),
  'late-failures': ({ random }) => ({ lateFailures: oneIn(random.between('one in', 1, 6)) }),
  'refusal-delay': ({ random }) => ({
    refusalDelay: milliseconds(random.between('delay', 1, 40)),
  }),
  timers: ({ random }) => ({
    timer: {
      early: microseconds(random.choose('early', 1_500)),
      late: microseconds(random.choose('late', 30_000)),
      tick: milliseconds(random.pick('tick', [0, 0, 4, 16, 100])),
    },
  }),
  standstill: () => ({ standstill: 'process' }),
  clock: () => ({ standstill: 'clock' }),
};

/** A backend's manner, until it is what it was. */
const BACKEND: Readonly<Record<BackendFamily, Draw<BackendManner>>> = {
  crash: () => ({ open: false }),
  mute: () => ({ answers: 0 }),
  twice: ({ random }) => ({ answers: random.between('answers', 2, 3) }),
  late: ({ random }) => ({ delay: milliseconds(random.between('delay', 20, 300)) }),
  elsewhere: () => ({ elsewhere: true }),
  large: ({ random }) => ({ answerBytes: random.pick('bytes', [400, 1_400, 4_000]) }),
};

/** What fits none of the tables above. */
const OTHER: Readonly<Record<OtherFamily, Family>> = {
  /** Nothing from one host to another, while the way back is open. */
  cut: (actor, lasts) => ({ begin: [drawCut(actor, lasts)], end: [] }),
  /** Nothing either way. */
  split: (actor, lasts) => {
    const cut = drawCut(actor, lasts);
    return { begin: [cut, { ...cut, from: cut.to, to: cut.from }], end: [] };
  },
  /** A backend's machine goes off, and comes back. */
  power: (actor) => {
    const host = drawHost(actor, 'backend');
    return {
      begin: [{ kind: 'Power', host, on: false }],
      end: [{ kind: 'Power', host, on: true }],
    };
  },
  remap: (actor) => ({ begin: [{ kind: 'Remap', client: drawClient(actor) }], end: [] }),
  reopen: (actor) => ({ begin: [{ kind: 'Reopen', client: drawClient(actor) }], end: [] }),
};

/** All of them by name. */
const FAMILIES: ReadonlyMap<string, Family> = new Map<string, Family>([
  ...Object.entries(LINK).map(([name, draw]) => [name, onLink(draw)] as const),
  ...Object.entries(HOST).map(([name, draw]) => [name, onHost(draw)] as const),
  ...Object.entries(BACKEND).map(([name, draw]) => [name, onBackend(draw)] as const),
  ...Object.entries(OTHER),
]);

export function familyNamed(name: FamilyName): Family {
  return present(FAMILIES.get(name), 'every name is one of a table');
}

/** Either direction of the link of a proxy, a backend or a client's host. */
function onLink(draw: Draw<LinkFaults>): Family {
  return (actor, lasts) => {
    const { random } = actor;
    const host = drawHost(actor, random.pick('role', ['proxy', 'backend', 'client'] as const));
    const place = random.pick('place', ['up', 'down'] as const);
    return { begin: [{ kind: 'LinkFault', host, place, faults: draw(actor), lasts }], end: [] };
  };
}

function onHost(draw: Draw<OsFaults>): Family {
  return (actor, lasts) => {
    const { number: proxy } = drawHost(actor, 'proxy');
    return { begin: [{ kind: 'HostFault', proxy, faults: draw(actor), lasts }], end: [] };
  };
}

function onBackend(draw: Draw<BackendManner>): Family {
  return (actor) => {
    const { number: backend } = drawHost(actor, 'backend');
    const { manner } = pick(actor.spec.backends, backend);
    return {
      begin: [{ kind: 'Behave', backend, manner: draw(actor) }],
      end: [{ kind: 'Behave', backend, manner }],
    };
  };
}

function drawCut(actor: Actor, lasts: Duration): Extract<WorldAction, { kind: 'Cut' }> {
  const proxy = drawHost(actor, 'proxy');
  const other = drawHost(actor, actor.random.pick('role', ['backend', 'client'] as const));
  const [from, to] = actor.random.pick('direction', [
    [proxy, other],
    [other, proxy],
  ] as const);
  return { kind: 'Cut', from, to, lasts };
}

/** Numbers count modulo a population: nothing has to be known of its size but that a draw reaches all of it. */
function drawHost({ random, spec }: Actor, role: HostName['role']): HostName {
  const { proxies, backends, clientHosts } = spec;
  const count = { proxy: proxies, backend: backends, client: clientHosts }[role].length;
  return { role, number: random.choose('host', Math.max(1, count)) };
}

function drawClient({ random, spec }: Actor): number {
  return random.choose('client', Math.max(1, spec.clients.length));
}

function firstProxy({ spec }: Actor): ProxySpec {
  return pick(spec.proxies, 0);
}

function oneIn(denominator: number): Ratio {
  return { numerator: 1, denominator };
}

function upTo(most: number): Span {
  return { low: microseconds(0), high: milliseconds(most) };
}
