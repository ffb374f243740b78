/**
 * Where the checkout is, seen from the sources as from dist/: benches start built files whichever
 * of them runs.
 */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

export const ROOT: string = findRoot(import.meta.dirname);

/** Path of a compiled file; throws when the checkout was not built. */
export function built(file: string): string {
  const path = join(ROOT, 'dist', file);
  if (!existsSync(path)) throw new Error(`${path} is missing: run npm run build`);
  return path;
}

function findRoot(directory: string): string {
  return existsSync(join(directory, 'package.json')) ? directory : findRoot(dirname(directory));
}
