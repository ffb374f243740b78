/**
 * What a plane handed to its kernel in a turn, and what waits for room: from the reports of a flush it follows which of it
 * went, which waits, and which is lost and why. Bounds are those of spec §6.5; the memory that all queues share is so much
 * larger than any world that it is taken for endless.
 */
import { sameAddress } from '../../../core/address.ts';
import { FLOW_EGRESS, LISTENER_EGRESS } from '../../../core/egress-queue.ts';
import type { SendFailed } from '../../../core/ports.ts';
import { hashOf, type DropCounter, type Parcel } from './parcel.ts';
import type { Line } from './parcel.ts';
import type { ToldListener } from './told-plane.ts';

/** Whose socket it is. */
export type Holder = Line | ToldListener;

export class Outbox {
  /** Handed over, and not reported so far. */
  readonly #handed: (Parcel | undefined)[] = [];
  /** Where in there the reports of a socket have got to. */
  readonly #reported = new Map<Holder, number>();
  /** Of this turn's first flush: to be sent once more, those behind it with it where nothing waited. */
  readonly refused: Parcel[] = [];
  readonly #refusing = new Set<Holder>();
  readonly #offered = new Set<Holder>();
  readonly #lost: (counter: DropCounter) => void;
  /** What refused parcels are sent again in is under way. */
  #isRetrying = false;

  /** `lost` is told of each datagram that ends here. */
  constructor(lost: (counter: DropCounter) => void) {
    this.#lost = lost;
  }

  handed(parcel: Parcel): void {
    this.#handed.push(parcel);
  }

  /** Whether nobody waits for the socket: when that is known, doubtful ones were not taken. */
  isFree(holder: Holder): boolean {
    if (holder.queue?.some(({ isDoubtful }) => !isDoubtful) === true) return false;
    holder.queue = undefined;
    return true;
  }

  /** It goes behind others, if there is room. */
  enqueue(parcel: Parcel): void {
    if (!append(parcel)) this.#lost('droppedWqFull');
  }

  /** The next one of a queue, if it has these bytes; doubtful ones before it were not taken. */
  takeOffer(holder: Holder, payload: Uint8Array): Parcel | undefined {
    const { queue = [] } = holder;
    const hash = hashOf(payload);
    const first = queue.findIndex(({ isOffered }) => !isOffered);
    const next = queue.findIndex((one, at) => {
      return at >= first && (one.hash === hash || !one.isDoubtful);
    });
    const parcel = first < 0 ? undefined : queue[next];
    if (parcel === undefined || parcel.hash !== hash) return undefined;
    queue.splice(first, next - first);
    parcel.isOffered = true;
    this.#offered.add(holder);
    return parcel;
  }

  /** How many of so many datagrams were handed over for a socket that did not open: they were never tried. */
  unsent(line: Line, count: number): number {
    let found = 0;
    for (let at = 0; at < this.#handed.length && found < count; at++) {
      const parcel = this.#handed[at];
      if (parcel?.toBackend !== true || parcel.line !== line) continue;
      this.#handed[at] = undefined;
      found += 1;
    }
    return found;
  }

  /** One that was handed over did not go. */
  failed(failure: SendFailed, holder: Holder): void {
    const parcel = this.#takeHanded(failure, holder);
    if (parcel === undefined) return;
    if (failure.cause === 'error')
      this.#lost(failure.errno === 'EMSGSIZE' ? 'droppedTooBig' : 'droppedSendError');
    else if (failure.cause === 'refused') {
      if (this.#isRetrying) this.#lost('droppedSendError');
      else {
        this.refused.push(parcel);
        if (holder.queue === undefined) this.#refusing.add(holder);
      }
    } else if (!this.#isRetrying && this.#refusing.has(holder)) this.refused.push(parcel);
    else if (!this.#takeBack(parcel)) this.#lost('droppedWqFull');
  }

  /** A flush is over. Whether what was refused in it goes out again now. */
  flushed(): boolean {
    this.#handed.length = 0;
    this.#reported.clear();
    this.#isRetrying = this.refused.length > 0;
    if (this.#isRetrying) return true;
    for (const holder of this.#offered) {
      const left = holder.queue?.filter(({ isOffered }) => !isOffered) ?? [];
      holder.queue = left.length > 0 ? left : undefined;
    }
    this.#offered.clear();
    this.#refusing.clear();
    return false;
  }

  /** The socket closes: what still waits for it is lost. */
  closed(holder: Holder): void {
    for (const { isOffered, isDoubtful } of holder.queue ?? [])
      if (!isOffered && !isDoubtful) this.#lost('droppedClosed');
    holder.queue = undefined;
    this.#offered.delete(holder);
  }

  /** Reports of a socket come in the order of its sends, and those that blocked after all others. */
  #takeHanded(failure: SendFailed, holder: Holder): Parcel | undefined {
    const toBackend = failure.direction === 'to-backend';
    const hash = failure.cause === 'error' ? undefined : hashOf(failure.payload);
    for (let at = this.#reported.get(holder) ?? 0; at < this.#handed.length; at++) {
      const parcel = this.#handed[at];
      if (parcel?.toBackend !== toBackend || holderOf(parcel) !== holder) continue;
      if (hash !== undefined && parcel.hash !== hash) continue;
      if ('dst' in failure && !sameAddress(failure.dst, parcel.line.client)) continue;
      this.#handed[at] = undefined;
      this.#reported.set(holder, at + 1);
      return parcel;
    }
    return undefined;
  }

  /** To its place in the queue, or behind the others. */
  #takeBack(parcel: Parcel): boolean {
    const holder = holderOf(parcel);
    if (parcel.toBackend ? !parcel.line.isOpen : parcel.line.listener.isClosed) return false;
    const isLate = this.#isRetrying && !this.#refusing.has(holder);
    if (parcel.toBackend && isLate && holder.queue !== undefined) return false;
    if (!parcel.isOffered) return append(parcel);
    parcel.isOffered = false;
    return true;
  }
}

function holderOf({ line, toBackend }: Parcel): Holder {
  return toBackend ? line : line.listener;
}

function append(parcel: Parcel): boolean {
  const holder = holderOf(parcel);
  const bounds = parcel.toBackend ? FLOW_EGRESS : LISTENER_EGRESS;
  const queue = holder.queue ?? [];
  let bytes = parcel.bytes + parcel.headerBytes;
  for (const one of queue) bytes += one.bytes + one.headerBytes;
  if (queue.length >= bounds.datagrams || bytes > bounds.bytes) return false;
  queue.push(parcel);
  holder.queue = queue;
  return true;
}
