/** Several machines as bytes: a header that says what they are, the graph of their objects, and the tables that it names. */
import { addToChecksum, ByteReader, CHECKSUM_WORDS } from './snapshot-bytes.ts';
import type { SnapshotCatalog } from './snapshot-catalog.ts';
import { SnapshotError } from './snapshot-error.ts';
import { MAGIC, VERSION, WORDS } from './snapshot-format.ts';
import { GraphReader } from './snapshot-read.ts';
import { GraphWriter } from './snapshot-write.ts';

export interface SnapshotOptions {
  /** `lengths`: datagrams that wait come back as zeros, so many as they were long. Everything else is exact all the same. */
  readonly payloads?: 'kept' | 'lengths';
}

/** Of several machines together: what they share they go on sharing. */
export function takeFrom(
  catalog: SnapshotCatalog,
  machines: readonly object[],
  { payloads = 'kept' }: SnapshotOptions = {},
): Uint8Array {
  const writer = new GraphWriter(catalog, payloads === 'kept');
  for (const machine of machines) writer.machine(machine);
  const graph = writer.out.written;
  const start = 4 * WORDS.end;
  const tables = writer.blocks.reduce((sum, block) => sum + block.length, 0);
  const length = 16 * Math.ceil((start + graph.length + tables) / 16);
  const bytes = new Uint8Array(length);
  bytes.set(graph, start);
  let at = start + graph.length;
  for (const block of writer.blocks) {
    bytes.set(block, at);
    at += block.length;
  }
  const words = wordsOf(bytes);
  words[WORDS.magic] = MAGIC;
  words[WORDS.version] = VERSION;
  words[WORDS.fingerprint] = catalog.fingerprint;
  words[WORDS.length] = length;
  words[WORDS.graph] = graph.length;
  words[WORDS.machines] = machines.length;
  seal(bytes);
  return bytes;
}

/** Says by a checksum that the bytes are as they were written. */
export function seal(bytes: Uint8Array): void {
  const words = wordsOf(bytes);
  words.set(checksumOf(words), WORDS.checksum);
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
    new ByteReader(bytes, start + graphLength, bytes.length),
  );
  try {
    for (const machine of machines) reader.machine(machine);
    reader.apply();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new SnapshotError(`the snapshot asks for too much: ${error.message}`, { cause: error });
  }
}

/** The length of the graph, of a snapshot that is whole and was taken by this code. */
function checkedGraphLength(catalog: SnapshotCatalog, machines: number, bytes: Uint8Array): number {
  if (bytes.length < 4 * WORDS.end || bytes.length % 16 !== 0) {
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
  const isWhole = checksumOf(words).every((word, at) => word === words[WORDS.checksum + at]);
  if (!isWhole) throw new SnapshotError('the snapshot was damaged: its checksum differs');
  if (words[WORDS.fingerprint] !== catalog.fingerprint) {
    throw new SnapshotError('the snapshot was taken by another build, whose machines differ');
  }
  if (words[WORDS.machines] !== machines) {
    throw new SnapshotError(`a snapshot of ${words[WORDS.machines]} machines, not of ${machines}`);
  }
  const graph = (words[WORDS.graph] ?? 0) >>> 0;
  if (graph > bytes.length - 4 * WORDS.end) throw new SnapshotError('the snapshot lacks its end');
  return graph;
}

function wordsOf({ buffer, byteOffset, length }: Uint8Array): Int32Array {
  return new Int32Array(buffer, byteOffset, length / 4);
}

/** Of everything but itself. */
function checksumOf(words: Int32Array): Int32Array {
  const sum = new Int32Array(CHECKSUM_WORDS);
  addToChecksum(sum, words.subarray(0, WORDS.checksum));
  addToChecksum(sum, words.subarray(WORDS.end));
  return sum;
}
