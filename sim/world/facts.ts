/**
 * Everything that oracles are told, in the order in which it happens. A history is a list of these, so an oracle can be shown
 * one that never happened, to see whether it minds. Payloads and headers are lent for the call.
 */
import type { Address } from '../../core/address.ts';
import type { SocketId } from '../../core/brand.ts';
import type { Config } from '../../core/config.ts';
import type { ControlInput, ControlOutput } from '../../core/control-contract.ts';
import type { ListenerCounters } from '../../core/metrics.ts';
import type { PlaneInput, PlaneOutput, Wake } from '../../core/plane-contract.ts';
import type { DgramHeader } from '../../core/proxy-protocol.ts';
import type { Instant } from '../../core/time.ts';
import type { WorldAction } from './actions.ts';
import type { Message } from './message.ts';
import type { ReceiveCounters } from './os-kernel.ts';
import type { PacketFate } from './packet.ts';
import type { Phase } from './spec.ts';

/** A process by its number: each start counts up, over all proxies. */
export type ProcessNumber = number;

/** One data plane of a process, numbered from 0. Socket ids are its own. */
export interface OfPlane {
  readonly process: ProcessNumber;
  readonly plane: number;
}

/** A data plane between two of its turns. */
export interface ProcessSample extends OfPlane {
  /** By the monotonic clock of its host. */
  readonly now: Instant;
  readonly flows: number;
  /** Datagrams in egress queues. */
  readonly waiting: number;
  /** Open descriptors of its host. */
  readonly descriptors: number;
  /** What it has open of them, and what its process probes. */
  readonly listeners: number;
  readonly upstreams: number;
  readonly probes: number;
  /** When the data plane wants to be woken, and why. */
  readonly wake: Wake | undefined;
  /** Turns so far, and those of them that heard nothing. */
  readonly turns: number;
  readonly idleTurns: number;
}

/** What a process counted until now, beside what its kernel did. */
export interface ProcessTotals {
  readonly process: ProcessNumber;
  /** Of all listeners of all its planes, those that are gone included. */
  readonly counters: Readonly<ListenerCounters>;
  readonly waiting: number;
  /** Since the process started. Probes count in neither `taken`, `accepted` nor `failedLate`. */
  readonly kernelIn: Readonly<ReceiveCounters>;
  readonly kernelOut: {
    /** Datagrams that the kernel took: left, stalled, failed late, or still leaving. */
    readonly accepted: number;
    readonly failedLate: number;
    /** Failures of those that the process has not heard of: it sleeps, or has just ended. */
    readonly untold: number;
    readonly stalled: number;
    readonly left: number;
    readonly leaving: number;
    /** Still leaving when the process started, of whoever was there before. */
    readonly leavingBefore: number;
  };
  /** What probes took, sent and lost late; it is in `received`, `left`, `stalled` and `leaving`. */
  readonly probes: {
    readonly taken: number;
    readonly accepted: number;
    readonly failedLate: number;
  };
  /** In receive buffers. */
  readonly kernelWaiting: number;
}

export interface Facts {
  PhaseBegan: { readonly phase: Phase };
  /** Before it is done. */
  Acted: { readonly action: WorldAction };
  /** A fault or cut is over, by itself or because all are. */
  FaultEnded: { readonly action: WorldAction };
  Packet: PacketFate;
  /** `message` is undefined for datagrams too short for one. */
  ClientSent: {
    readonly client: number;
    readonly src: Address;
    readonly dst: Address;
    readonly bytes: number;
    readonly message: Message | undefined;
  };
  /** `message` is undefined when the bytes are not those of one. */
  ClientHeard: {
    readonly client: number;
    readonly local: Address;
    readonly from: Address;
    readonly bytes: number;
    readonly message: Message | undefined;
  };
  /** `message` is what comes after the header. */
  BackendHeard: {
    readonly backend: number;
    readonly from: Address;
    readonly header: DgramHeader;
    readonly bytes: number;
    readonly message: Message | undefined;
  };
  BackendSent: {
    readonly backend: number;
    readonly from: Address;
    readonly to: Address;
    readonly bytes: number;
    readonly message: Message | undefined;
  };
  Started: {
    readonly process: ProcessNumber;
    readonly proxy: number;
    readonly config: Config;
    /** Descriptors that its host has open already. */
    readonly descriptors: number;
  };
  /** A crash: whatever the process held is gone, and so many descriptors of its host are left open. */
  Crashed: { readonly process: ProcessNumber; readonly descriptors: number };
  /** The process has closed everything and ended: what its host had open then, and how much of that were probes. */
  Exited: {
    readonly process: ProcessNumber;
    readonly descriptors: number;
    readonly probes: number;
  };
  /** `now` is what the pump calls so: the monotonic clock of the host. */
  /** A new upstream socket sends from here. Another may have done so before. */
  Bound: OfPlane & {
    readonly socket: SocketId;
    readonly local: Address;
  };
  DataInput: OfPlane & { readonly input: PlaneInput; readonly now: Instant };
  DataTimeout: OfPlane & { readonly now: Instant };
  DataOutput: OfPlane & { readonly output: PlaneOutput };
  ControlInput: {
    readonly process: ProcessNumber;
    readonly input: ControlInput;
    readonly now: Instant;
  };
  ControlTimeout: { readonly process: ProcessNumber; readonly now: Instant };
  ControlOutput: { readonly process: ProcessNumber; readonly output: ControlOutput };
  TurnEnded: ProcessSample;
  /** The whole state of its flow machines was recounted (core/verify.ts): what is wrong with it. */
  Verified: { readonly process: ProcessNumber; readonly broken: readonly string[] };
  /** At the end of each phase, and when a process ends or crashes. */
  Counted: ProcessTotals;
}

export type FactKind = keyof Facts;

const FACT_KINDS: readonly FactKind[] = [
  'PhaseBegan',
  'Acted',
  'FaultEnded',
  'Packet',
  'ClientSent',
  'ClientHeard',
  'BackendHeard',
  'BackendSent',
  'Started',
  'Crashed',
  'Exited',
  'Bound',
  'DataInput',
  'DataTimeout',
  'DataOutput',
  'ControlInput',
  'ControlTimeout',
  'ControlOutput',
  'TurnEnded',
  'Verified',
  'Counted',
];

/** `at` is virtual time; what a proxy calls now may differ from it. */
export type Hearing<Kind extends FactKind> = (fact: Facts[Kind], at: Instant) => void;

/** The facts somebody wants to hear, by kind. */
export type Hearings = { readonly [Kind in FactKind]?: Hearing<Kind> };

/** Hands every fact to those who want its kind, in the order in which they joined. */
export class FactHub {
  readonly #hearers: Hearers = {
    PhaseBegan: [],
    Acted: [],
    FaultEnded: [],
    Packet: [],
    ClientSent: [],
    ClientHeard: [],
    BackendHeard: [],
    BackendSent: [],
    Started: [],
    Crashed: [],
    Exited: [],
    Bound: [],
    DataInput: [],
    DataTimeout: [],
    DataOutput: [],
    ControlInput: [],
    ControlTimeout: [],
    ControlOutput: [],
    TurnEnded: [],
    Verified: [],
    Counted: [],
  };

  join(hearings: Hearings): void {
    for (const kind of FACT_KINDS) add(this.#hearers, kind, hearings);
  }

  tell<Kind extends FactKind>(kind: Kind, fact: Facts[Kind], at: Instant): void {
    for (const hearing of this.#hearers[kind]) hearing(fact, at);
  }
}

type Hearers = { readonly [Kind in FactKind]: Hearing<Kind>[] };

function add<Kind extends FactKind>(
  hearers: Pick<Hearers, Kind>,
  kind: Kind,
  hearings: Pick<Hearings, Kind>,
): void {
  const hearing = hearings[kind];
  if (hearing !== undefined) hearers[kind].push(hearing);
}
