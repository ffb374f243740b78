/**
 * Branded ids. A branded number cannot be mixed up with another number, and the only casts that make one stand here and
 * in time.ts (the linter forbids them elsewhere).
 */
import { assert } from './assert.ts';

declare const brand: unique symbol;

/** A `T` that the compiler keeps apart from every other `T`. */
export type Brand<T, Name extends string> = T & { readonly [brand]: Name };

/** Slot of a live flow within one listener. Reused after close, so never a key for anything that outlives the flow. */
export type FlowId = Brand<number, 'FlowId'>;

/**
 * A connected upstream socket: a serial number that counts up from 1 and is never reused in a process, and the listener it
 * serves, so that whatever is heard of a socket can be counted after it has closed.
 */
export type SocketId = Brand<number, 'SocketId'>;

/** An open listener: a number that the control plane handed out, below LISTENERS_MAX and used again when it is free. */
export type ListenerId = Brand<number, 'ListenerId'>;

/** A command that awaits its reply: counted up from 1, never reused in a process. */
export type RequestId = Brand<number, 'RequestId'>;

export function requestId(serial: number): RequestId {
  return serial as RequestId;
}

export function flowId(slot: number): FlowId {
  return slot as FlowId;
}

/** Listeners of one process: socket ids carry the listener's number. */
export const LISTENERS_MAX = 1_024;

/** The socket with this serial number, below 2^43, of this listener. */
export function socketId(serial: number, listener: ListenerId): SocketId {
  return (serial * LISTENERS_MAX + listener) as SocketId;
}

/** A socket id that was stored as a plain number. */
export function knownSocket(stored: number): SocketId {
  return stored as SocketId;
}

export function listenerOf(socket: SocketId): ListenerId {
  return (socket % LISTENERS_MAX) as ListenerId;
}

/** The serial number of a socket, modulo 2^32. */
export function serialOf(socket: number): number {
  return (socket / LISTENERS_MAX) >>> 0;
}

export function listenerId(index: number): ListenerId {
  assert(index >= 0 && index < LISTENERS_MAX, 'there is a bound on listeners');
  return index as ListenerId;
}
