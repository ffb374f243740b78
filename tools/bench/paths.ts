/**
 * Where the checkout is, seen from the sources as from dist/: benches start built files whichever
 * of them runs.
 */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

export const ROOT: string = findRoot(import.meta.dirname);

/** Path of a compiled file, of this checkout unless `root` names another; throws when that was not built. */
export function built(file: string, root: string = ROOT): string {
  const path = join(root, 'dist', file);
  if (!existsSync(path)) throw new Error(`${path} is missing: run npm run build in ${root}`);
  return path;
}

/** The command as it is installed, of this checkout or another; throws when that was not built. */
export function commandOf(root: string): readonly string[] {
  const main = built('shell/main.js', root);
  const script = join(root, 'shell/sozu-udp');
  // An older checkout has none, and is compared with.
  return existsSync(script) ? [script] : [process.execPath, main];
}

function findRoot(directory: string): string {
  return existsSync(join(directory, 'package.json')) ? directory : findRoot(dirname(directory));
}
