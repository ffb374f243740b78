/**
 * A rolling digest of what a machine put out: kinds, ids, addresses, lengths and PROXY headers, never a byte of a payload. It
 * stands in a trace in place of the outputs. Two runs that agree on it after each input did the same, but for one chance
 * in 2^32; fast rather than secret.
 */
import type { Address } from './address.ts';
import type { ControlOutput } from './control-contract.ts';
import type { PlaneOutput } from './plane-contract.ts';
import { isTrainOutput, type TrainOutput } from './train.ts';

/** The digest of nothing. */
export const DIGEST_START = 0x243f6a88;

/** Kinds of outputs. A new kind takes a new number: a number says what it says for ever. */
const KINDS: Readonly<Record<PlaneOutput['kind'] | ControlOutput['kind'], number>> = {
  OpenListener: 1,
  CloseListener: 2,
  OpenUpstream: 3,
  RefuseUpstream: 4,
  CloseUpstream: 5,
  SendToBackend: 6,
  SendToClient: 7,
  WatchUpstream: 8,
  WatchListener: 9,
  Report: 10,
  Direct: 11,
  StartProbe: 12,
  CancelProbe: 13,
  Event: 14,
  Reply: 15,
  TrainToBackend: 16,
  TrainToClient: 17,
};

/** What stands for an address or a header that is not there. */
const ABSENT = 0x7a5cf72d;

const TWO_32 = 2 ** 32;

/** The digest with one more 32-bit word. */
function mixWord(digest: number, word: number): number {
  const mixed = Math.imul(digest ^ word, 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}

/** The digest with one more output of a data plane. */
export function mixPlaneOutput(digest: number, output: PlaneOutput): number {
  if (isTrainOutput(output)) return mixTrain(digest, output);
  switch (output.kind) {
    case 'SendToBackend': {
      const sent = mixNumber(mixWord(digest, KINDS.SendToBackend), output.socket);
      return mixHeader(mixWord(sent, output.payload.length), output.header);
    }
    case 'SendToClient': {
      const sent = mixWord(mixWord(digest, KINDS.SendToClient), output.listener);
      const addressed = mixAddress(mixWord(sent, output.payload.length), output.dst);
      return mixAddress(addressed, output.from);
    }
    case 'OpenUpstream':
    case 'RefuseUpstream':
      return mixOpening(digest, output);
    case 'CloseUpstream':
    case 'WatchUpstream':
      return mixNumber(mixWord(digest, KINDS[output.kind]), output.socket);
    case 'OpenListener':
    case 'CloseListener':
    case 'WatchListener':
    case 'Report':
    default:
      return mixValue(mixWord(digest, KINDS[output.kind]), output);
  }
}

function mixOpening(
  digest: number,
  output: Extract<PlaneOutput, { kind: 'OpenUpstream' | 'RefuseUpstream' }>,
): number {
  const opened = mixNumber(mixWord(digest, KINDS[output.kind]), output.socket);
  const bound = mixAddress(mixAddress(opened, output.backend), output.source);
  return output.kind === 'OpenUpstream' ? bound : mixValue(bound, output.errno);
}

function mixTrain(digest: number, output: TrainOutput): number {
  const begun = mixWord(digest, KINDS[output.kind]);
  const sized = mixWord(mixWord(begun, output.payload.length), output.unit);
  if (output.kind === 'TrainToBackend') return mixNumber(sized, output.socket);
  return mixAddress(mixAddress(mixWord(sized, output.listener), output.dst), output.from);
}

/** The digest with one more output of a control plane. They are rare. */
export function mixControlOutput(digest: number, output: ControlOutput): number {
  return mixValue(mixWord(digest, KINDS[output.kind]), output);
}

/** The digest with the instant a machine wants to be woken at, if it does. */
export function mixWake(digest: number, at: number | undefined): number {
  return at === undefined ? mixWord(digest, ABSENT) : mixNumber(digest, at);
}

function mixNumber(digest: number, value: number): number {
  return mixWord(mixWord(digest, value | 0), (value / TWO_32) | 0);
}

function mixAddress(digest: number, address: Address | undefined): number {
  if (address === undefined) return mixWord(digest, ABSENT);
  const first = mixWord(mixWord(digest, (address.family << 16) | address.port), address.a);
  if (address.family === 4) return first;
  const rest = mixWord(mixWord(mixWord(first, address.b), address.c), address.d);
  return mixWord(rest, address.scope);
}

function mixHeader(digest: number, header: Uint8Array | undefined): number {
  return header === undefined ? mixWord(digest, ABSENT) : mixBytes(digest, header);
}

function mixBytes(digest: number, bytes: Uint8Array): number {
  let mixed = mixWord(digest, bytes.length);
  let word = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    word = (word << 8) | (bytes[at] ?? 0);
    if (at % 4 === 3) mixed = mixWord(mixed, word);
  }
  return bytes.length % 4 === 0 ? mixed : mixWord(mixed, word);
}

/** Any data. A property that is undefined is as good as absent. */
function mixValue(digest: number, value: unknown): number {
  if (typeof value === 'number') {
    const whole = Math.floor(value);
    const mixed = mixNumber(digest, whole);
    return whole === value ? mixed : mixWord(mixed, (value - whole) * TWO_32);
  }
  if (typeof value === 'string') return mixText(digest, value);
  if (typeof value !== 'object' || value === null) return mixWord(digest, value === true ? 1 : 2);
  if (value instanceof Uint8Array) return mixBytes(digest, value);
  let mixed = digest;
  for (const [key, item] of Object.entries(value)) {
    if (item !== undefined) mixed = mixValue(mixText(mixed, key), item);
  }
  return mixWord(mixed, ABSENT);
}

function mixText(digest: number, text: string): number {
  let mixed = mixWord(digest, text.length);
  for (let at = 0; at < text.length; at += 1) mixed = mixWord(mixed, text.charCodeAt(at));
  return mixed;
}
