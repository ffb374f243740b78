/**
 * Several machines as bytes: a header that says what they are, the graph of their objects, the tables that it names, and a
 * checksum of all that.
 */
import { addToChecksum, ByteReader, CHECKSUM_WORDS } from './snapshot-bytes.ts';
import type { SnapshotCatalog } from './snapshot-catalog.ts';
import { SnapshotError } from './snapshot-error.ts';
import { MAGIC, VERSION, WORDS } from './snapshot-format.ts';
import type { SnapshotMemory } from './snapshot-memory.ts';
import { GraphReader } from './snapshot-read.ts';
import { GraphWriter } from './snapshot-write.ts';

export interface SnapshotOptions {
  /** `lengths`: datagrams that wait come back as zeros, so many as they were long. Everything else is exact all the same. */
  readonly payloads?: 'kept' | 'lengths';
}

export interface DraftOptions extends SnapshotOptions {
  /** Where the snapshot is to stand; in memory of its own unless given. */
  readonly memory?: SnapshotMemory | undefined;
}

/** Longest slice, bytes: a multiple of a step of the checksum. */
const SLICE_BYTES = 65_536;

/**
 * A snapshot that was taken, but for its checksum: that takes as long as the copy did, and can be had when somebody reads it.
 * Good until its memory is used for another.
 */
export class SnapshotDraft {
  private readonly bytes: Uint8Array;

  /** `bytes` end with room for the checksum. */
  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  get length(): number {
    return this.bytes.length;
  }

  /** All of it, in order, in slices of 64 KiB at most: views. */
  *slices(): Generator<Uint8Array> {
    const { bytes } = this;
    const sum = new Int32Array(CHECKSUM_WORDS);
    const words = wordsOf(bytes);
    const end = words.length - CHECKSUM_WORDS;
    for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
      const next = at + SLICE_BYTES;
      addToChecksum(sum, words.subarray(at / 4, Math.min(next / 4, end)));
      if (next >= bytes.length) words.set(sum, end);
      yield bytes.subarray(at, next);
    }
  }

  /** All of it in one piece: a view. */
  whole(): Uint8Array {
    seal(this.bytes);
    return this.bytes;
  }
}

/** Of several machines together: what they share they go on sharing. */
export function takeFrom(
  catalog: SnapshotCatalog,
  machines: readonly object[],
  { payloads = 'kept' }: SnapshotOptions = {},
): Uint8Array {
  return draftFrom(catalog, machines, { payloads }).whole();
}

export function draftFrom(
  catalog: SnapshotCatalog,
  machines: readonly object[],
  { payloads = 'kept', memory }: DraftOptions = {},
): SnapshotDraft {
  const writer = new GraphWriter(catalog, payloads === 'kept');
  for (const machine of machines) writer.machine(machine);
  writer.finish();
  const graph = writer.out.written;
  const start = 4 * WORDS.end;
  const tables = writer.blocks.reduce((sum, block) => sum + block.length, 0);
  const length = 16 * Math.ceil((start + graph.length + tables) / 16) + 4 * CHECKSUM_WORDS;
  const bytes = memory?.fit(length).subarray(0, length) ?? new Uint8Array(length);
  const words = wordsOf(bytes);
  words.fill(0, 0, WORDS.end);
  words[WORDS.magic] = MAGIC;
  words[WORDS.version] = VERSION;
  words[WORDS.fingerprint] = catalog.fingerprint;
  words[WORDS.length] = length;
  words[WORDS.graph] = graph.length;
  words[WORDS.machines] = machines.length;
  bytes.set(graph, start);
  let at = start + graph.length;
  for (const block of writer.blocks) {
    bytes.set(block, at);
    at += block.length;
  }
  bytes.fill(0, at);
  return new SnapshotDraft(bytes);
}

/** Says by a checksum that the bytes are as they were written. */
export function seal(bytes: Uint8Array): void {
  const words = wordsOf(bytes);
  words.set(checksumOf(words), words.length - CHECKSUM_WORDS);
}

export function restoreInto(
  catalog: SnapshotCatalog,
  machines: readonly object[],
  given: Uint8Array,
): void {
  // Words are read in their own right, and bytes from a file may begin anywhere.
  const bytes = given.byteOffset % 4 === 0 ? given : new Uint8Array(given);
  const graphLength = checkedGraphLength(catalog, machines.length, bytes);
  const start = 4 * WORDS.end;
  const reader = new GraphReader(
    catalog,
    new ByteReader(bytes, start, start + graphLength),
    new ByteReader(bytes, start + graphLength, bytes.length - 4 * CHECKSUM_WORDS),
  );
  try {
    for (const machine of machines) reader.machine(machine);
    reader.finish();
    reader.apply();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new SnapshotError(`the snapshot asks for too much: ${error.message}`, { cause: error });
  }
}

/** The length of the graph, of a snapshot that is whole and was taken by this code. */
function checkedGraphLength(catalog: SnapshotCatalog, machines: number, bytes: Uint8Array): number {
  const room = bytes.length - 4 * (WORDS.end + CHECKSUM_WORDS);
  if (room < 0 || bytes.length % 16 !== 0) {
    throw new SnapshotError(`${bytes.length} bytes are no snapshot, or not all of one`);
  }
  const words = wordsOf(bytes);
  if (words[WORDS.magic] !== MAGIC) throw new SnapshotError('this is no snapshot');
  if (words[WORDS.version] !== VERSION) {
    throw new SnapshotError(`a snapshot of version ${words[WORDS.version]}, not ${VERSION}`);
  }
  const length = (words[WORDS.length] ?? 0) >>> 0;
  if (length !== bytes.length) {
    throw new SnapshotError(`the snapshot had ${length} bytes, and ${bytes.length} are here`);
  }
  const sum = words.subarray(-CHECKSUM_WORDS);
  const isWhole = checksumOf(words).every((word, at) => word === sum[at]);
  if (!isWhole) throw new SnapshotError('the snapshot was damaged: its checksum differs');
  if (words[WORDS.fingerprint] !== catalog.fingerprint) {
    throw new SnapshotError('the snapshot was taken by another build, whose machines differ');
  }
  if (words[WORDS.machines] !== machines) {
    throw new SnapshotError(`a snapshot of ${words[WORDS.machines]} machines, not of ${machines}`);
  }
  const graph = (words[WORDS.graph] ?? 0) >>> 0;
  if (graph > room) throw new SnapshotError('the snapshot lacks its end');
  return graph;
}

function wordsOf({ buffer, byteOffset, length }: Uint8Array): Int32Array {
  return new Int32Array(buffer, byteOffset, length / 4);
}

/** Of everything before itself. */
function checksumOf(words: Int32Array): Int32Array {
  const sum = new Int32Array(CHECKSUM_WORDS);
  addToChecksum(sum, words.subarray(0, -CHECKSUM_WORDS));
  return sum;
}
