/**
 * Says when the configuration file changed (`watch_config`). The folder is watched, not the file: editors and Kubernetes put a
 * new file in the place of the old one.
 */
import { statSync, watch, type FSWatcher } from 'node:fs';
import { dirname } from 'node:path';
import type { Log } from './log.ts';

/** Whoever writes a file in several steps has time to finish. */
const QUIET_MILLISECONDS = 200;

/**
 * Calls `changed` once the file at `path` is another and its folder has been quiet for a moment; until the returned function
 * is called. A folder that cannot be watched is told in the log.
 */
export function watchFile(path: string, changed: () => void, log: Log): () => void {
  let timer: NodeJS.Timeout | undefined;
  let known = stamp(path);
  const look = (): void => {
    const now = stamp(path);
    // A file that is gone for a moment is about to come back.
    if (now === undefined || now === known) return;
    known = now;
    changed();
  };
  const failed = (error: unknown): void => {
    log.error({ file: path, error: String(error) }, 'the file is not watched');
  };
  let watcher: FSWatcher | undefined;
  try {
    watcher = watch(dirname(path), { persistent: false }, () => {
      clearTimeout(timer);
      timer = setTimeout(look, QUIET_MILLISECONDS);
    });
    watcher.on('error', failed);
  } catch (error) {
    failed(error);
  }
  return () => {
    clearTimeout(timer);
    watcher?.close();
  };
}

/** Tells two states of a file apart; undefined where there is none. Links are followed. */
function stamp(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? undefined : `${found.ino} ${found.size} ${found.mtimeNs}`;
}
