/**
 * What the parties of a simulated world say to each other: datagrams that name their sender and their number, and whose every
 * byte follows from that, so that whoever gets one knows where it came from and whether it arrived unchanged.
 */

/** A request is a client's; an answer repeats its name, and tells which backend gave it, and which of its copies it is. */
export interface Message {
  readonly kind: 'request' | 'answer';
  /** Who asked, by number. */
  readonly client: number;
  /** Which of the client's requests, counted from 1. */
  readonly serial: number;
  /** Who answers; 0 in a request. */
  readonly backend: number;
  /** 0 for the first answer to a request, 1 for the next. */
  readonly copy: number;
}

/** The shortest datagram that has a message in it, bytes. */
export const MESSAGE_BYTES_MIN = 12;

const REQUEST = 0xc1;
const ANSWER = 0xa1;

/** A datagram of `bytes`, at least MESSAGE_BYTES_MIN. */
export function writeMessage(message: Message, bytes: number): Uint8Array {
  const payload = new Uint8Array(Math.max(bytes, MESSAGE_BYTES_MIN));
  payload[0] = message.kind === 'request' ? REQUEST : ANSWER;
  payload[1] = message.backend;
  payload[2] = message.copy;
  writeWord(payload, 3, message.client, 2);
  writeWord(payload, 5, message.serial, 4);
  writeWord(payload, 9, checkOf(payload), 2);
  payload.fill(fillerOf(payload), 11);
  return payload;
}

/** Undefined unless every byte is as it was written; its length is not known to a message. */
export function readMessage(payload: Uint8Array): Message | undefined {
  const [first, backend = 0, copy = 0] = payload;
  if (payload.length < MESSAGE_BYTES_MIN || (first !== REQUEST && first !== ANSWER))
    return undefined;
  if (readWord(payload, 9, 2) !== checkOf(payload)) return undefined;
  const filler = fillerOf(payload);
  for (let at = 11; at < payload.length; at++) if (payload[at] !== filler) return undefined;
  return {
    kind: first === REQUEST ? 'request' : 'answer',
    client: readWord(payload, 3, 2),
    serial: readWord(payload, 5, 4),
    backend,
    copy,
  };
}

function checkOf(payload: Uint8Array): number {
  let sum = 0x5a5a;
  for (let at = 0; at < 9; at++) sum = Math.imul(sum ^ (payload[at] ?? 0), 0x01000193);
  return (sum ^ (sum >>> 16)) & 0xffff;
}

function fillerOf(payload: Uint8Array): number {
  return ((payload[9] ?? 0) ^ (payload[8] ?? 0) ^ 0x33) & 0xff;
}

function writeWord(payload: Uint8Array, at: number, value: number, bytes: number): void {
  for (let index = bytes - 1; index >= 0; index--) {
    payload[at + index] = value & 0xff;
    value >>>= 8;
  }
}

function readWord(payload: Uint8Array, at: number, bytes: number): number {
  let value = 0;
  for (let index = 0; index < bytes; index++) value = value * 256 + (payload[at + index] ?? 0);
  return value;
}
