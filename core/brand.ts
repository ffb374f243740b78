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

/** A connected upstream socket. Counts up from 1 and is never reused in a process. */
export type SocketId = Brand<number, 'SocketId'>;

/** A listener of one configuration: its place in the list of listeners, from 0. */
export type ListenerId = Brand<number, 'ListenerId'>;

export function flowId(slot: number): FlowId {
  return slot as FlowId;
}

export function socketId(serial: number): SocketId {
  return serial as SocketId;
}

export function listenerId(index: number): ListenerId {
  assert(Number.isSafeInteger(index) && index >= 0, 'a listener id is a natural number');
  return index as ListenerId;
}
