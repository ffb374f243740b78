/**
 * Presets: what is known of a protocol, so that an operator says `preset = "dns"` instead of ten keys. A preset is
 * silent about keys of which the protocol says nothing; explicit keys win over it, and its timeouts give way to those that
 * the listener names. Every value stands beside its reason, so that the manual can be written from here.
 *
 * Idle times come from RFC 4787 REQ-5: two minutes at least, five recommended, less only for protocols of short exchanges
 * on well-known ports.
 */
import type { OnBackendLoss } from './config.ts';
import { seconds, type Duration } from './time.ts';

/** Whether a backend answers each request, so that silence means something. */
export type Exchange = 'request-response' | 'one-way';

/** The keys that a preset may set, in the core's names and units; see ClusterConfig for those that stand there too. */
export interface PresetSettings {
  readonly frontTimeout: Duration;
  readonly backTimeout: Duration;
  /** Without it passive health draws nothing from missing answers. */
  readonly exchange: Exchange;
  readonly responses: number;
  readonly responsesPerRequest: boolean;
  readonly requestsLinger: boolean;
  readonly forwardEmptyDatagrams: boolean;
  readonly proxyProtocolEveryDatagram: boolean;
  readonly onBackendDown: OnBackendLoss;
  readonly allowBackendAsClient: boolean;
}

export type PresetKey = keyof PresetSettings;

export interface Reasoned<T> {
  readonly value: T;
  /** A sentence for the manual. */
  readonly reason: string;
}

export type Preset = { readonly [Key in PresetKey]?: Reasoned<PresetSettings[Key]> };

export const PRESET_NAMES = [
  'dns',
  'ntp',
  'radius',
  'syslog',
  'sip',
  'quic',
  'wireguard',
  'generic',
] as const;

export type PresetName = (typeof PRESET_NAMES)[number];

/** The same in every preset: it matters only where a cluster sends the header at all. */
const EVERY_DATAGRAM = because(
  true,
  'The PROXY protocol text of 2026-04-27 wants a header in each datagram, and DNS servers drop those without.',
);

const LINGER = because(
  true,
  'A cap on requests should end the sharing of a flow, not cut off the reply to the last request.',
);

const REBIND_STATELESS = because(
  'rebind',
  'Any backend can serve the next datagram; a sender that never pauses would stay with a dead one for ever.',
);

export const PRESETS: Readonly<Record<PresetName, Preset>> = {
  dns: {
    ...idle(
      5,
      'A resolver asks again or elsewhere after 5 s (resolv.conf), so no answer is awaited longer.',
    ),
    exchange: because('request-response', 'Every query is answered, be it with an error.'),
    responses: because(1, 'A query has one answer; the socket is free again as soon as it came.'),
    responsesPerRequest: because(
      true,
      'The A and the AAAA query of a client leave one socket, and both answers must get through.',
    ),
    requestsLinger: LINGER,
    proxyProtocolEveryDatagram: EVERY_DATAGRAM,
    onBackendDown: REBIND_STATELESS,
  },
  ntp: {
    ...idle(
      5,
      'An answer older than a few seconds is of no use to a clock, and the next poll is 64 s away.',
    ),
    exchange: because('request-response', 'Every client packet is answered.'),
    responses: because(
      1,
      'A request has one answer; polls are so far apart that a kept flow only costs.',
    ),
    responsesPerRequest: because(
      true,
      'A client that starts sends a burst from one port (iburst).',
    ),
    requestsLinger: LINGER,
    proxyProtocolEveryDatagram: EVERY_DATAGRAM,
    onBackendDown: REBIND_STATELESS,
    allowBackendAsClient: because(
      true,
      'An NTP server asks others from port 123, so a backend may be a client with its own address.',
    ),
  },
  radius: {
    ...idle(
      30,
      'A client repeats a request for up to 30 s (RFC 5080 §2.2.1), and each copy must find the same server.',
    ),
    exchange: because('request-response', 'Every valid request is answered or acknowledged.'),
    responses: because(
      0,
      'An EAP conversation takes many rounds with one server, which keeps its state: no reply ends the flow.',
    ),
    requestsLinger: LINGER,
    proxyProtocolEveryDatagram: EVERY_DATAGRAM,
    onBackendDown: because(
      'rebind',
      'A NAS keeps its source port for days; conversations under way start anew on another server.',
    ),
  },
  syslog: {
    ...idle(
      60,
      'Nobody answers, so a flow is kept only for order: a sender that paused a minute may move.',
    ),
    exchange: because(
      'one-way',
      'A collector never answers (RFC 5426): its silence is no sign of trouble.',
    ),
    proxyProtocolEveryDatagram: EVERY_DATAGRAM,
    onBackendDown: REBIND_STATELESS,
  },
  sip: {
    ...idle(
      300,
      'A registered phone is called through its flow; RFC 4787 recommends five minutes.',
    ),
    exchange: because('request-response', 'Every request but ACK has a response.'),
    forwardEmptyDatagrams: because(
      true,
      'Phones keep a NAT open with datagrams of no meaning, some of them empty (RFC 6263 lists the ways).',
    ),
    requestsLinger: LINGER,
    proxyProtocolEveryDatagram: EVERY_DATAGRAM,
    onBackendDown: because(
      'rebind',
      'A phone sends from one port for ever and repeats its requests; its next registration repairs the rest.',
    ),
  },
  quic: {
    ...idle(
      300,
      'Above every idle timeout in use (RFC 9000 §10.1 lets the peers choose); RFC 4787 recommends it.',
    ),
    exchange: because(
      'request-response',
      'A server acknowledges within its max_ack_delay, 25 ms by default (RFC 9000 §13.2.1), uploads included.',
    ),
    requestsLinger: LINGER,
    proxyProtocolEveryDatagram: EVERY_DATAGRAM,
    onBackendDown: because(
      'pin',
      'No other backend has the keys, so moving saves nothing, and kills a connection if the verdict was wrong. ' +
        'The client gives up by itself and comes back from a new port.',
    ),
  },
  wireguard: {
    ...idle(
      300,
      'A session lives 180 s (REJECT_AFTER_TIME), and a tunnel without keepalives is silent between uses.',
    ),
    exchange: because(
      'one-way',
      'WireGuard says nothing to whom it does not know, and little to a tunnel used one way.',
    ),
    proxyProtocolEveryDatagram: EVERY_DATAGRAM,
    onBackendDown: because(
      'rebind',
      'A peer keeps its port and repeats its handshake every 5 s: on another backend the next one succeeds.',
    ),
  },
  generic: {
    ...idle(120, 'The least that RFC 4787 (REQ-5) allows where nothing is known of the protocol.'),
    forwardEmptyDatagrams: because(
      true,
      'An empty datagram is legal and some protocols keep a flow open with it; only a live flow carries one.',
    ),
    requestsLinger: LINGER,
    proxyProtocolEveryDatagram: EVERY_DATAGRAM,
    onBackendDown: REBIND_STATELESS,
  },
};

/** What a preset says of a key; undefined when it says nothing, or when there is no preset. */
export function presetValue<Key extends PresetKey>(
  name: PresetName | undefined,
  key: Key,
): PresetSettings[Key] | undefined {
  return name === undefined ? undefined : PRESETS[name][key]?.value;
}

function idle(
  count: number,
  reason: string,
): { readonly frontTimeout: Reasoned<Duration>; readonly backTimeout: Reasoned<Duration> } {
  const timeout = because(seconds(count), reason);
  return { frontTimeout: timeout, backTimeout: timeout };
}

function because<const T>(value: T, reason: string): Reasoned<T> {
  return { value, reason };
}
