/**
 * Settings drawn for a seed, so that what a scenario does not care about differs from seed to seed: over a sweep every knob of
 * clusters, listeners and health has been turned in company of every other. Each knob has a stream of its own, so that a new
 * one changes none of the others.
 */
import { ipv4, ipv6, type Address } from '../../core/address.ts';
import { AMPLIFICATION_OFF } from '../../core/amplification.ts';
import {
  LOAD_BALANCINGS,
  type ClusterSettings,
  type ListenerConfig,
  type OnBackendLoss,
} from '../../core/config.ts';
import type { Backend } from '../../core/contract.ts';
import { HEALTH_DEFAULTS, type HealthSettings } from '../../core/health/settings.ts';
import { PRESET_NAMES, presetValue, type PresetName } from '../../core/presets.ts';
import { microseconds, milliseconds } from '../../core/time.ts';
import type { Random } from '../random.ts';
import type { Span } from './faults.ts';
import type { WorkersSpec } from './spec.ts';

/** Draws by name from one stream of its own each. */
class Dial {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  pick<T>(name: string, values: readonly T[]): T {
    return this.#random.fork(name).pick(name, values);
  }

  /** One of these in two of three seeds. */
  maybe<T>(name: string, values: readonly T[]): T | undefined {
    return this.isOn(`any ${name}`, 67) ? this.pick(name, values) : undefined;
  }

  between(name: string, low: number, high: number): number {
    return this.#random.fork(name).between(name, low, high);
  }

  isOn(name: string, percent: number): boolean {
    return this.#random.fork(name).chance(name, percent, 100);
  }
}

const LOSSES: readonly OnBackendLoss[] = ['pin', 'rebind', 'close'];

/** Knobs of a cluster under which whoever asks is still answered. */
export function drawCluster(config: Random): Partial<ClusterSettings> {
  const dial = new Dial(config.fork('cluster'));
  const headers = dial.isOn('headers', 40);
  return {
    loadBalancing: dial.pick('policy', LOAD_BALANCINGS),
    loadMetric: dial.pick('metric', ['CONNECTIONS', 'REQUESTS', 'CONNECTION_TIME'] as const),
    affinityWithPort: dial.isOn('affinity with port', 50),
    frontTimeout: milliseconds(dial.between('front timeout', 200, 1_500)),
    backTimeout: milliseconds(dial.between('back timeout', 200, 1_500)),
    onBackendDown: dial.pick('on backend down', LOSSES),
    onBackendRemoved: dial.pick('on backend removed', LOSSES),
    sendProxyProtocol: headers,
    proxyProtocolEveryDatagram: dial.isOn('a header each', 50),
    rejectClientHeader: dial.isOn('reject headers', 50),
    responsesPerRequest: dial.isOn('by request', 50),
    requestsLinger: dial.isOn('linger', 50),
    lateReplyGrace: milliseconds(dial.pick('grace', [0, 0, 20, 300])),
    forwardEmptyDatagrams: dial.isOn('empty datagrams', 50),
    exchange: dial.maybe('exchange', ['request-response', 'one-way'] as const),
    passive: dial.isOn('passive', 70),
    allowBackendAsClient: dial.isOn('backends are clients', 10),
    subnetPrefixIpv4: dial.pick('subnet', [0, 8, 24, 32]),
    subnetPrefixIpv6: dial.pick('subnet 6', [0, 48, 64, 128]),
    amplification: dial.pick('amplification', [AMPLIFICATION_OFF, { factor: 3, floor: 1_232 }]),
  };
}

/** What a preset says, over what it does not; its idle times are minutes, so they stay as drawn. */
export function drawPreset(
  config: Random,
  names: readonly PresetName[] = PRESET_NAMES,
): Partial<ClusterSettings> {
  const name = new Dial(config).pick('preset', names);
  const own = drawCluster(config);
  return {
    ...own,
    exchange: presetValue(name, 'exchange'),
    responses: presetValue(name, 'responses') ?? 0,
    responsesPerRequest: presetValue(name, 'responsesPerRequest') ?? false,
    requestsLinger: presetValue(name, 'requestsLinger') ?? false,
    forwardEmptyDatagrams: presetValue(name, 'forwardEmptyDatagrams') ?? false,
    proxyProtocolEveryDatagram: presetValue(name, 'proxyProtocolEveryDatagram') ?? false,
    onBackendDown: presetValue(name, 'onBackendDown') ?? 'pin',
    allowBackendAsClient: presetValue(name, 'allowBackendAsClient') ?? false,
  };
}

/** Knobs of a listener that lets everything in which a client sends. */
export function drawListener(config: Random): Partial<ListenerConfig> {
  const dial = new Dial(config.fork('listener'));
  const times = dial.isOn('own times', 30);
  return {
    frontTimeout: times ? milliseconds(dial.between('front timeout', 200, 1_000)) : undefined,
    backTimeout: times ? milliseconds(dial.between('back timeout', 200, 1_000)) : undefined,
    maxRxDatagramSize: dial.pick('largest', [1_500, 4_096, 65_507]),
    receiveBuffer: dial.maybe('receive buffer', [16_384, 262_144]),
    sendBuffer: dial.maybe('send buffer', [16_384, 262_144]),
    bindRetry: milliseconds(dial.between('bind retry', 5, 100)),
  };
}

/** Probes a few times a second; `down` at the earliest after `fall` of them. */
export function drawHealth(config: Random): HealthSettings {
  const dial = new Dial(config.fork('health'));
  const mode = dial.pick('mode', ['TCP_PROBE', 'UDP_PROBE'] as const);
  const probeInterval = milliseconds(dial.between('interval', 60, 200));
  return {
    ...HEALTH_DEFAULTS,
    mode,
    tcpPort: dial.maybe('port', [8_080]),
    rise: dial.between('rise', 1, 3),
    fall: dial.between('fall', 1, 3),
    failOpen: dial.isOn('fail open', 50),
    udpProbePayload: mode === 'UDP_PROBE' ? PROBE : undefined,
    expectReply: dial.isOn('expect reply', 80),
    probeInterval,
    probeTimeout: microseconds(dial.between('timeout', 20_000, probeInterval)),
  };
}

/** Backends of different weights, some of them in reserve; the first is always there for everybody. */
export function drawBackends(config: Random, backends: readonly Backend[]): Backend[] {
  const dial = new Dial(config.fork('backends'));
  return backends.map((backend, number) => ({
    ...backend,
    weight: dial.pick(`weight ${number}`, [1, 50, 100, 100, 255]),
    backup: number > 0 && dial.isOn(`backup ${number}`, 15),
  }));
}

/** Both planes on a thread, or messages between them that take a while. */
export function drawPlaneDelay(config: Random): Span | undefined {
  const dial = new Dial(config.fork('planes'));
  if (dial.isOn('together', 50)) return undefined;
  return { low: microseconds(0), high: microseconds(dial.pick('delay', [200, 3_000, 20_000])) };
}

/** How many data planes share the work, and how: several of them in so many seeds of a hundred. */
export function drawWorkers(config: Random, percent = 100): WorkersSpec | undefined {
  const dial = new Dial(config.fork('workers'));
  if (!dial.isOn('several', percent)) return undefined;
  return { count: dial.between('count', 2, 4), steer: dial.pick('steer', ['tuple', 'source']) };
}

/** Where upstream sockets are bound: nowhere in particular, or at addresses of the proxy's in turn. */
export function drawSources(config: Random, addresses: readonly Address[]): Address[] {
  const on = new Dial(config).isOn('sources', 40);
  return on ? addresses.map((address) => ({ ...address, port: 0 })) : [];
}

/** An address that may be anybody's, of this family. */
export function anybody(random: Random, family: 4 | 6): Address {
  const port = random.between('port', 1_024, 65_535);
  const word = random.choose('address', 2 ** 24);
  return family === 4 ? ipv4(0x64000000 + word, port) : ipv6([0xfd640000, 0, 0, word], port);
}

/** No message of a client, and no empty datagram. */
const PROBE: Uint8Array = new Uint8Array([0x70, 0x72, 0x6f, 0x62, 0x65]);
