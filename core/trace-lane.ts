/** What a recorder keeps in mind of each machine: the record that is open, and what the other machine has yet to hear. */
import type { Instant } from './time.ts';
import type { ByteWriter } from './trace-bytes.ts';
import { DIGEST_START, mixWake } from './trace-digest.ts';
import { ASKED, UNFINISHED } from './trace-record.ts';

/** What one machine said and the other has not heard. More, and messages are recorded in full until the next segment. */
const UNHEARD_MAX = 1_024;

/** The outputs of one machine, and the record they belong to. */
export class Lane {
  digest: number = DIGEST_START;
  /** Where the record of the last input begins; negative: there is none. */
  private record = -1;
  /** Not all outputs of its last input were taken, whether that was recorded or not. */
  isBusy = false;
  private isOpen = false;
  private isAsked = true;

  start(): void {
    this.digest = DIGEST_START;
    this.forget();
  }

  forget(): void {
    this.record = -1;
    this.isOpen = false;
    this.isAsked = true;
  }

  begins(out: ByteWriter): void {
    this.record = out.at;
    this.isOpen = true;
    this.isAsked = false;
  }

  /** All outputs of the last input were taken. */
  drained({ bytes }: ByteWriter): void {
    this.isBusy = false;
    if (!this.isOpen) return;
    this.isOpen = false;
    bytes[this.record] = (bytes[this.record] ?? 0) & ~UNFINISHED;
    this.stamp(bytes);
  }

  /** The first question after an input counts: more of them change nothing. */
  asked({ bytes }: ByteWriter, at: Instant | undefined): void {
    if (this.isOpen || this.isAsked) return;
    this.isAsked = true;
    this.digest = mixWake(this.digest, at);
    bytes[this.record] = (bytes[this.record] ?? 0) | ASKED;
    this.stamp(bytes);
  }

  private stamp(bytes: Uint8Array): void {
    const { digest, record } = this;
    bytes[record + 1] = digest;
    bytes[record + 2] = digest >>> 8;
    bytes[record + 3] = digest >>> 16;
    bytes[record + 4] = digest >>> 24;
  }
}

/** Messages on their way from one machine to the other, in order. */
export class Unheard<T> {
  private messages: T[] = [];
  private isLost = false;

  push(message: T): void {
    if (this.isLost) return;
    this.messages.push(message);
    if (this.messages.length <= UNHEARD_MAX) return;
    this.isLost = true;
    this.messages = [];
  }

  /** Whether `message` is the next that is due; it no longer is then. */
  take(message: T): boolean {
    if (this.messages[0] !== message || this.messages.length === 0) return false;
    this.messages.shift();
    return true;
  }

  /** What is on its way when a segment begins. */
  start(): readonly T[] {
    this.isLost = false;
    return [...this.messages];
  }
}
