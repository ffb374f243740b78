/** `sozu-udp replay FILE --anonymise OUT`: a trace that can be handed on, of one that cannot. */
import { createHmac, randomBytes } from 'node:crypto';
import { closeSync, openSync, unlinkSync, writeSync } from 'node:fs';
import { anonymiseTrace, decodeTrace, type Anonymised } from '../../core/index.ts';

/**
 * Writes the anonymised trace to `out`, which must not be there yet. What came of it, in lines, and the exit code: 0 done, 1
 * the trace does not replay here, 2 it cannot be read or written.
 */
export function anonymise(
  bytes: Uint8Array,
  out: string,
): { readonly lines: readonly string[]; readonly code: number } {
  const decoded = decodeTrace(bytes);
  if (!decoded.ok) {
    const { offset, problem, fix } = decoded;
    return { lines: [`unreadable at byte ${offset}: ${problem}`, `  fix: ${fix}`], code: 2 };
  }
  const { build } = decoded.trace.header;
  try {
    const result = anonymiseTrace(decoded.trace, { flip: secretFlip(), tableSeed: newSeed() });
    if (result.replayed.difference !== undefined) {
      const { number } = result.replayed.difference.entry;
      const fix = `  fix: anonymise it with the build that wrote it: ${build}`;
      return { lines: [`input ${number} brings something else than then`, fix], code: 1 };
    }
    writeNew(out, result.blocks);
    return { lines: linesOf(out, result), code: 0 };
  } catch (error) {
    return { lines: [`not anonymised: ${String(error)}`], code: 2 };
  }
}

function linesOf(out: string, { replayed, alike, leftOut }: Anonymised): string[] {
  return [
    `written to ${out}: addresses and names are others, and its digests are its own`,
    `${alike} of ${replayed.inputs} inputs bring outputs of the kinds and lengths of the original; ${leftOut} are left out`,
  ];
}

/** Under a key that is gone with this process. */
function secretFlip(): (prefix: string) => boolean {
  const key = randomBytes(32);
  const known = new Map<string, boolean>();
  return (prefix) => {
    const before = known.get(prefix);
    if (before !== undefined) return before;
    const [byte = 0] = createHmac('sha256', key).update(prefix).digest();
    const flip = (byte & 1) === 1;
    known.set(prefix, flip);
    return flip;
  };
}

function newSeed(): { readonly first: number; readonly second: number } {
  const bytes = randomBytes(8);
  return { first: bytes.readInt32LE(0), second: bytes.readInt32LE(4) };
}

function writeNew(path: string, blocks: Iterable<Uint8Array>): void {
  const file = openSync(path, 'wx', 0o600);
  try {
    for (const block of blocks) {
      for (let at = 0; at < block.length;) at += writeSync(file, block, at);
    }
  } catch (error) {
    unlinkSync(path);
    throw error;
  } finally {
    closeSync(file);
  }
}
