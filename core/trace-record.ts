/**
 * One input of a machine as a record of a trace: a tag, the digest of all outputs up to and with those it brought, the time
 * since the record before, and what the input says. Of a payload only what the core looks at: its length, and whether a
 * client's begins with the PROXY signature.
 */
import { assertNever } from './assert.ts';
import { knownSocket, LISTENERS_MAX, listenerId, type ListenerId, type SocketId } from './brand.ts';
import type { ControlInput } from './control-contract.ts';
import { looksLikeProxyHeader } from './hostile.ts';
import type { ProbeAnswer } from './health/probe-contract.ts';
import type { PlaneInput, PlaneTrain } from './plane-contract.ts';
import type { SendFailed } from './ports.ts';
import { SIGNATURE } from './proxy-protocol.ts';
import type { ByteReader, ByteWriter } from './trace-bytes.ts';

/** An input of the data plane. `NextDirective`: what the control plane directed next; the time came for `Timeout`. */
export type DataStep =
  PlaneInput | PlaneTrain | { readonly kind: 'NextDirective' } | { readonly kind: 'Timeout' };

/** An input of the control plane. `NextReport`: what the data plane reported next. */
export type ControlStep =
  ControlInput | { readonly kind: 'NextReport' } | { readonly kind: 'Timeout' };

/** An input of either machine. */
export type Step =
  | { readonly machine: 'data'; readonly input: DataStep }
  | { readonly machine: 'control'; readonly input: ControlStep };

/** Records of inputs that are told in full, because they are rare, keep them in a list of values beside the records. */
export interface Values {
  /** Keeps `value`, and says at what place. */
  keep(value: unknown): number;
}

/** The tag's lower five bits. A new kind takes a new number: a number says what it says for ever. */
const CLIENT_ARRIVED = 1;
const BACKEND_ARRIVED = 2;
const FLUSHED = 3;
const DATA_TIMEOUT = 4;
const REFUSED = 5;
const OPEN_FAILED = 6;
const LISTENER_ANSWER = 7;
const SEND_FAILED = 8;
const UPSTREAM_WRITABLE = 9;
const LISTENER_WRITABLE = 10;
const LATE_SEND_FAILURE = 11;
const NEXT_DIRECTIVE = 12;
const DIRECTED = 13;
const CONTROL_TIMEOUT = 14;
const NEXT_REPORT = 15;
const REPORTED = 16;
const PROBE_ANSWERED = 17;
const COMMAND = 18;
const CLIENT_TRAIN = 19;
const BACKEND_TRAIN = 20;

const KIND_MASK = 0x1f;
/** A payload begins with the PROXY signature. */
const SIGNED = 0x20;
/** After the input the machine was asked when it wants to be woken, and the digest has its answer. */
export const ASKED = 0x40;
/** The input's outputs were not all taken: it failed, or the trace ends within it. The digest is that before it. */
export const UNFINISHED = 0x80;

/** Bytes of tag and digest, which stand first. */
const HEAD_BYTES = 5;

/** A datagram's payload has at most so many bytes, and so has every payload of a trace. */
const PAYLOAD_MAX = 0xffff;
const ERRNO_LENGTH_MAX = 64;
const HEADER_BYTES_MAX = 1_024;

const CAUSES = ['blocked', 'refused', 'error'] as const;
const PROBE_ANSWERS: readonly ProbeAnswer[] = ['ok', 'refused', 'failed', 'not-tried'];

/** What stands for a payload. */
const ZEROS = new Uint8Array(PAYLOAD_MAX);
const SIGNED_ZEROS = new Uint8Array(PAYLOAD_MAX);
SIGNED_ZEROS.set(SIGNATURE);

/** Appends tag, room for the digest, and time. */
function begin(out: ByteWriter, tag: number, delta: number): void {
  out.byte(tag | UNFINISHED);
  out.at += HEAD_BYTES - 1;
  out.integer(delta);
}

/** Appends an input of the data plane, `delta` microseconds after the record before; the digest is filled in later. */
export function putDataStep(out: ByteWriter, input: DataStep, delta: number, values: Values): void {
  switch (input.kind) {
    case 'ClientArrived': {
      const { payload } = input;
      begin(out, looksLikeProxyHeader(payload) ? CLIENT_ARRIVED | SIGNED : CLIENT_ARRIVED, delta);
      out.natural(input.listener);
      out.address(input.src);
      out.address(input.local);
      return putLength(out, payload);
    }
    case 'BackendArrived':
      begin(out, BACKEND_ARRIVED, delta);
      out.natural(input.socket);
      return putLength(out, input.payload);
    case 'ClientTrain':
      begin(out, CLIENT_TRAIN, delta);
      out.natural(input.listener);
      out.address(input.src);
      out.address(input.local);
      return putTrain(out, input.payload, input.unit);
    case 'BackendTrain':
      begin(out, BACKEND_TRAIN, delta);
      out.natural(input.socket);
      return putTrain(out, input.payload, input.unit);
    case 'Flushed':
      return begin(out, FLUSHED, delta);
    case 'Timeout':
      return begin(out, DATA_TIMEOUT, delta);
    case 'NextDirective':
      return begin(out, NEXT_DIRECTIVE, delta);
    case 'Directed':
      begin(out, DIRECTED, delta);
      return out.natural(values.keep(input.message));
    default:
      return putNews(out, input, delta);
  }
}

/** Appends an input of the control plane. */
export function putControlStep(
  out: ByteWriter,
  input: ControlStep,
  delta: number,
  values: Values,
): void {
  switch (input.kind) {
    case 'Timeout':
      return begin(out, CONTROL_TIMEOUT, delta);
    case 'NextReport':
      return begin(out, NEXT_REPORT, delta);
    case 'Reported':
      begin(out, REPORTED, delta);
      return out.natural(values.keep(input.report));
    case 'ProbeAnswered':
      begin(out, PROBE_ANSWERED, delta);
      out.natural(input.probe);
      return out.byte(PROBE_ANSWERS.indexOf(input.answer));
    case 'Command':
      begin(out, COMMAND, delta);
      return out.natural(values.keep({ request: input.request, command: input.command }));
    default:
      return assertNever(input);
  }
}

type News = Exclude<
  PlaneInput,
  {
    kind:
      'ClientArrived' | 'BackendArrived' | 'ClientTrain' | 'BackendTrain' | 'Flushed' | 'Directed';
  }
>;

/** What sockets tell beside datagrams. */
function putNews(out: ByteWriter, input: News, delta: number): void {
  switch (input.kind) {
    case 'Refused':
    case 'UpstreamWritable':
      begin(out, input.kind === 'Refused' ? REFUSED : UPSTREAM_WRITABLE, delta);
      return out.natural(input.socket);
    case 'ListenerWritable':
    case 'LateSendFailure':
      begin(out, input.kind === 'ListenerWritable' ? LISTENER_WRITABLE : LATE_SEND_FAILURE, delta);
      return out.natural(input.listener);
    case 'OpenFailed':
      begin(out, OPEN_FAILED, delta);
      out.natural(input.socket);
      out.address(input.backend);
      out.address(input.source);
      putErrno(out, input.errno);
      return out.natural(input.unsent);
    case 'ListenerAnswer':
      begin(out, LISTENER_ANSWER, delta);
      out.natural(input.listener);
      return putErrno(out, input.errno ?? '');
    case 'SendFailed':
      begin(out, SEND_FAILED, delta);
      return putFailure(out, input.failure);
    default:
      return assertNever(input);
  }
}

function putFailure(out: ByteWriter, failure: SendFailed): void {
  const toBackend = failure.direction === 'to-backend';
  out.byte(CAUSES.indexOf(failure.cause) * 2 + (toBackend ? 1 : 0));
  out.natural(toBackend ? failure.socket : failure.listener);
  if (failure.cause === 'error') return putErrno(out, failure.errno);
  putLength(out, failure.payload);
  if (failure.direction === 'to-client') {
    out.address(failure.dst);
    return out.address(failure.from);
  }
  const header = failure.header ?? ZEROS.subarray(0, 0);
  out.natural(header.length);
  return out.raw(header);
}

function putLength(out: ByteWriter, payload: Uint8Array): void {
  out.natural(Math.min(payload.length, PAYLOAD_MAX));
}

function putTrain(out: ByteWriter, payload: Uint8Array, unit: number): void {
  putLength(out, payload);
  out.natural(unit);
}

function putErrno(out: ByteWriter, errno: string): void {
  out.text(errno.length > ERRNO_LENGTH_MAX ? errno.slice(0, ERRNO_LENGTH_MAX) : errno);
}

/** A record as it stands in a trace. */
export interface TraceRecord {
  readonly step: Step;
  /** Microseconds since the record before. */
  readonly delta: number;
  readonly digest: number;
  readonly asked: boolean;
  readonly finished: boolean;
}

/** Turns kept values back into what they were, or throws a TraceDamage. */
export interface KnownValues {
  directed(at: number): Extract<PlaneInput, { kind: 'Directed' }>;
  reported(at: number): Extract<ControlInput, { kind: 'Reported' }>;
  command(at: number): Extract<ControlInput, { kind: 'Command' }>;
}

/** The next record; throws a TraceDamage where there is none. Payloads are zeros of the same length, shared by all. */
export function takeRecord(from: ByteReader, values: KnownValues): TraceRecord {
  const tag = from.byte();
  const digest = from.word();
  const delta = from.integer();
  const step = takeStep(from, tag, values);
  const [asked, finished] = [(tag & ASKED) !== 0, (tag & UNFINISHED) === 0];
  return { step, delta, digest, asked, finished };
}

function takeStep(from: ByteReader, tag: number, values: KnownValues): Step {
  const kind = tag & KIND_MASK;
  if (kind >= CONTROL_TIMEOUT && kind <= COMMAND) {
    return { machine: 'control', input: takeControlStep(from, kind, values) };
  }
  return { machine: 'data', input: takeDataStep(from, tag, values) };
}

function takeDataStep(from: ByteReader, tag: number, values: KnownValues): DataStep {
  const kind = tag & KIND_MASK;
  switch (kind) {
    case CLIENT_ARRIVED: {
      const [listener, src, local] = [takeListener(from), from.address(), from.maybeAddress()];
      const payload = takePayload(from, (tag & SIGNED) === 0 ? ZEROS : SIGNED_ZEROS);
      return { kind: 'ClientArrived', listener, src, local, payload };
    }
    case BACKEND_ARRIVED: {
      const socket = takeSocket(from);
      return { kind: 'BackendArrived', socket, payload: takePayload(from, ZEROS) };
    }
    case CLIENT_TRAIN: {
      const [listener, src, local] = [takeListener(from), from.address(), from.maybeAddress()];
      return { kind: 'ClientTrain', listener, src, local, ...takeTrain(from) };
    }
    case BACKEND_TRAIN:
      return { kind: 'BackendTrain', socket: takeSocket(from), ...takeTrain(from) };
    case FLUSHED:
      return { kind: 'Flushed' };
    case DATA_TIMEOUT:
      return { kind: 'Timeout' };
    case NEXT_DIRECTIVE:
      return { kind: 'NextDirective' };
    case DIRECTED:
      return values.directed(from.natural());
    default:
      return takeNews(from, kind);
  }
}

function takeNews(from: ByteReader, kind: number): DataStep {
  switch (kind) {
    case REFUSED:
      return { kind: 'Refused', socket: takeSocket(from) };
    case UPSTREAM_WRITABLE:
      return { kind: 'UpstreamWritable', socket: takeSocket(from) };
    case LISTENER_WRITABLE:
      return { kind: 'ListenerWritable', listener: takeListener(from) };
    case LATE_SEND_FAILURE:
      return { kind: 'LateSendFailure', listener: takeListener(from) };
    case OPEN_FAILED: {
      const [socket, backend, source] = [takeSocket(from), from.address(), from.maybeAddress()];
      const [errno, unsent] = [takeErrno(from), from.natural()];
      return { kind: 'OpenFailed', socket, backend, source, errno, unsent };
    }
    case LISTENER_ANSWER: {
      const [listener, errno] = [takeListener(from), takeErrno(from)];
      return { kind: 'ListenerAnswer', listener, errno: errno === '' ? undefined : errno };
    }
    case SEND_FAILED:
      return { kind: 'SendFailed', failure: takeFailure(from) };
    default:
      throw from.damage(`an input of kind ${kind}`);
  }
}

function takeFailure(from: ByteReader): SendFailed {
  const form = from.byte();
  const cause = CAUSES[form >>> 1];
  if (cause === undefined) throw from.damage(`a failed send of form ${form}`);
  return form % 2 === 1 ? takeUpstreamFailure(from, cause) : takeListenerFailure(from, cause);
}

function takeUpstreamFailure(from: ByteReader, cause: SendFailed['cause']): SendFailed {
  const socket = takeSocket(from);
  if (cause === 'error') return { direction: 'to-backend', cause, socket, errno: takeErrno(from) };
  const payload = takePayload(from, ZEROS);
  const length = from.bounded(HEADER_BYTES_MAX, 'a header of length');
  const header = length === 0 ? undefined : from.raw(length).slice();
  return { direction: 'to-backend', cause, socket, header, payload };
}

function takeListenerFailure(from: ByteReader, cause: SendFailed['cause']): SendFailed {
  const listener = takeListener(from);
  if (cause === 'error') return { direction: 'to-client', cause, listener, errno: takeErrno(from) };
  if (cause === 'refused') throw from.damage('a refusal on a socket that is not connected');
  const payload = takePayload(from, ZEROS);
  const [dst, source] = [from.address(), from.maybeAddress()];
  return { direction: 'to-client', cause, listener, dst, from: source, payload };
}

function takeControlStep(from: ByteReader, kind: number, values: KnownValues): ControlStep {
  switch (kind) {
    case CONTROL_TIMEOUT:
      return { kind: 'Timeout' };
    case NEXT_REPORT:
      return { kind: 'NextReport' };
    case REPORTED:
      return values.reported(from.natural());
    case PROBE_ANSWERED: {
      const probe = from.natural();
      const answer = PROBE_ANSWERS[from.byte()];
      if (answer === undefined) throw from.damage('an answer that no probe gives');
      return { kind: 'ProbeAnswered', probe, answer };
    }
    case COMMAND:
      return values.command(from.natural());
    default:
      throw from.damage(`an input of kind ${kind}`);
  }
}

function takePayload(from: ByteReader, bytes: Uint8Array): Uint8Array {
  return bytes.subarray(0, from.bounded(PAYLOAD_MAX, 'a payload of length'));
}

function takeTrain(from: ByteReader): { readonly payload: Uint8Array; readonly unit: number } {
  const payload = takePayload(from, ZEROS);
  const unit = from.bounded(payload.length, 'a unit of length');
  if (unit === 0) throw from.damage('a train of nothing');
  return { payload, unit };
}

function takeErrno(from: ByteReader): string {
  const errno = from.text();
  if (errno.length > ERRNO_LENGTH_MAX) throw from.damage('an errno that is too long');
  return errno;
}

function takeSocket(from: ByteReader): SocketId {
  return knownSocket(from.natural());
}

function takeListener(from: ByteReader): ListenerId {
  return listenerId(from.bounded(LISTENERS_MAX - 1, 'a listener of number'));
}
