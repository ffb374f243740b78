/**
 * The receive buffer of the harness, as a driver would have it: one piece of memory, lent for a call and poisoned after it, so
 * that whoever keeps a view sees rubbish (law 5).
 */
import { byteOf, HEADER_FILL, type Payload } from './actions.ts';
import { sameBytes } from './comparison.ts';

const BYTES = 70_000;

export class LentBuffer {
  private readonly poison: number;
  private readonly bytes = new Uint8Array(BYTES);
  /** Views by length: only their making is saved, every byte is written anew. */
  private readonly views = new Map<number, Uint8Array>();

  constructor(poison: number) {
    this.poison = poison;
  }

  lend(payload: Payload): Uint8Array {
    if (payload.fill === HEADER_FILL) {
      for (let at = 0; at < payload.length; at += 1) this.bytes[at] = byteOf(payload, at);
    } else {
      this.bytes.fill(payload.fill, 0, payload.length);
    }
    let view = this.views.get(payload.length);
    if (view === undefined) {
      view = this.bytes.subarray(0, payload.length);
      this.views.set(payload.length, view);
    }
    return view;
  }

  /** The loan is over. */
  takeBack(payload: Payload): void {
    this.bytes.fill(this.poison, 0, payload.length);
  }

  /** Whether `view` is the very bytes that were lent, or a copy that equals them. */
  isIntact(view: Uint8Array, payload: Payload): boolean {
    if (view.buffer !== this.bytes.buffer || view.byteOffset !== 0) return sameBytes(view, payload);
    const last = payload.length - 1;
    if (view.length !== payload.length || last < 0) return view.length === payload.length;
    return view[0] === byteOf(payload, 0) && view[last] === byteOf(payload, last);
  }
}
