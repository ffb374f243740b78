/**
 * Which parts of a table were ever written. Tables have room for the worst case from the start, and most of it is never used:
 * a snapshot copies what is marked here without a look at it, and does not go near the rest. A mark is set where a record is
 * taken into use, once for each flow and not for each datagram, and it stays.
 */

/** Bytes, a power of two: a mark for each. */
const PIECE_BITS = 10;

export class UsedPart {
  /** All of a buffer of its own. */
  readonly table: Int32Array | Float64Array;
  private readonly recordBytes: number;
  private readonly marks: Uint8Array;

  /** A table of records of so many elements, all zero. */
  constructor(table: Int32Array | Float64Array, stride: number) {
    this.table = table;
    this.recordBytes = stride * table.BYTES_PER_ELEMENT;
    // Whole words, because a snapshot looks for zeros by words.
    this.marks = new Uint8Array(4 * Math.ceil(table.byteLength / 2 ** (PIECE_BITS + 2)));
  }

  /** This record is no longer zero. */
  mark(record: number): void {
    const begin = record * this.recordBytes;
    this.marks[begin >>> PIECE_BITS] = 1;
    this.marks[(begin + this.recordBytes - 1) >>> PIECE_BITS] = 1;
  }

  /** Where there may be something else than zeros: begin and end in bytes of one run after the other. */
  runs(): number[] {
    const { marks, table } = this;
    const runs: number[] = [];
    let begin = -1;
    for (let piece = 0; piece <= marks.length; piece += 1) {
      const isUsed = marks[piece] === 1;
      if (isUsed === begin >= 0) continue;
      if (!isUsed) runs.push(begin, Math.min(piece << PIECE_BITS, table.byteLength));
      begin = isUsed ? piece << PIECE_BITS : -1;
    }
    return runs;
  }
}
