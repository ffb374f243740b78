/** The world that a seed begins with, as data: who is there, where, and how the proxies are configured. */
import type { Address } from '../../core/address.ts';
import type { Config } from '../../core/config.ts';
import type { Hash64 } from '../../core/hash.ts';
import { microseconds, type Duration } from '../../core/time.ts';
import type { LinkFaults, Span } from './faults.ts';
import type { NatSettings } from './nat.ts';
import type { Sharing } from './os-bindings.ts';
import type { HostShape } from './os-faults.ts';
import type { TcpManner } from './os-control.ts';

/** A proxy with a host of its own. */
export interface ProxySpec {
  readonly shape: Partial<HostShape> & Pick<HostShape, 'name' | 'addresses'>;
  readonly config: Config;
  /** Of every chance in it: placement, tables, RANDOM, probe jitter. */
  readonly randomSeed: Hash64;
  /**
   * How long a message between its planes takes; undefined when both share a thread, or hear of each other at once where there
   * are several data planes. Messages of a pair keep their order.
   */
  readonly planeDelay: Span | undefined;
  /** Data planes behind one address; undefined: one. */
  readonly workers: WorkersSpec | undefined;
}

/** Several data planes of one process, each with sockets of its own, and how a kernel chooses among those of a listener. */
export type WorkersSpec = Sharing;

/** A client: a program with one socket at a time. */
export interface ClientSpec {
  /** The host it is on, by number. */
  readonly host: number;
  /** Its first socket: an address of its host, and a port. Later ones count up from there. */
  readonly address: Address;
}

/** Hosts of clients. Behind a NAT their addresses are private. */
export interface ClientHostSpec {
  readonly ips: readonly Address[];
  /** The NAT it is behind, by number. */
  readonly nat: number | undefined;
}

/** What a backend does with what it hears. */
export interface BackendManner {
  /** Whether anybody is at its port; if not, its kernel refuses. */
  readonly open: boolean;
  /** Answers to each request: 0 is mute, 2 answers twice. */
  readonly answers: number;
  /** How long it takes to answer. */
  readonly delay: Duration;
  /** Answers from another port than it was asked at. */
  readonly elsewhere: boolean;
  /** Bytes of an answer; 0: as many as were asked. */
  readonly answerBytes: number;
  /** What a TCP connection meets; undefined: accepted while open. */
  readonly tcp: TcpManner | undefined;
}

export interface BackendSpec {
  readonly address: Address;
  readonly manner: BackendManner;
}

/** Whole phases, in this order. Faults begin in chaos only, and end with it. */
export interface PhaseTimes {
  readonly calm: Duration;
  readonly chaos: Duration;
  /** From the end of all faults to the order to drain. */
  readonly heal: Duration;
  /** From there to the end of the run, at most. */
  readonly drain: Duration;
}

export type Phase = keyof PhaseTimes;

export const PHASES: readonly Phase[] = ['calm', 'chaos', 'heal', 'drain'];

export interface WorldSpec {
  readonly phases: PhaseTimes;
  /** Of every host, outside of episodes. */
  readonly link: LinkFaults;
  readonly proxies: readonly ProxySpec[];
  readonly nats: readonly NatSettings[];
  readonly clientHosts: readonly ClientHostSpec[];
  readonly clients: readonly ClientSpec[];
  /** One host each. */
  readonly backends: readonly BackendSpec[];
  /**
   * Whether everything that may go wrong is within what the proxy has to bear: then it must recover, and serve. Beyond it
   * only safety is asked for.
   */
  readonly withinTolerance: boolean;
}

export const ECHO: BackendManner = {
  open: true,
  answers: 1,
  delay: microseconds(0),
  elsewhere: false,
  answerBytes: 0,
  tcp: undefined,
};
