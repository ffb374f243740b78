/**
 * Memory for snapshots, used again and again. To copy the tables of 100,000 flows takes some milliseconds, and several times as
 * long where the system has yet to hand out the pages that they are copied to (decision 0024).
 */

/** The system hands memory out in pages of so many bytes, or of more. */
const PAGE_BYTES = 4_096;

/** Room beyond what was asked for, so that a few more flows need no other memory: a quarter. */
const SPARE = 4;

/** A preparation touches one part in so many. */
const PARTS = 32;

export class SnapshotMemory {
  private bytes = new Uint8Array(0);
  private touched = 0;

  get length(): number {
    return this.bytes.length;
  }

  /** At least so many bytes, that hold whatever they held before. */
  fit(length: number): Uint8Array {
    if (this.bytes.length < length) this.bytes = newBytes(length);
    return this.bytes;
  }

  /** Has the system hand out a part of what `fit` will want: called often enough ahead of it, all of that. */
  prepare(length: number): void {
    if (this.bytes.length < length) {
      this.bytes = newBytes(length);
      this.touched = 0;
    }
    const { bytes } = this;
    const end = Math.min(bytes.length, this.touched + bytes.length / PARTS);
    for (; this.touched < end; this.touched += PAGE_BYTES) bytes[this.touched] = 0;
  }
}

function newBytes(length: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(length + Math.ceil(length / SPARE));
}
