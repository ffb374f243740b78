/**
 * Says when the configuration file changed (`watch_config`). The folder is watched, not the file: editors and Kubernetes put a
 * new file in the place of the old one.
 */
import { statSync, watch, type BigIntStats, type FSWatcher } from 'node:fs';
import { dirname } from 'node:path';
import type { Log } from './log.ts';

/** Whoever writes a file in several steps has time to finish. */
const QUIET_MILLISECONDS = 200;

/**
 * Calls `changed` once the file at `path` is another and its folder has been quiet for a moment; until the returned function
 * is called. A folder that cannot be watched is told in the log; one that another took the place of is followed there.
 */
export function watchFile(path: string, changed: () => void, log: Log): () => void {
  const folder = dirname(path);
  let timer: NodeJS.Timeout | undefined;
  let known = stamp(path);
  let watched: string | undefined;
  let watcher: FSWatcher | undefined;
  const failed = (error: unknown): void => {
    log.error({ file: path, error: String(error) }, 'the file is not watched');
  };
  const open = (): void => {
    watcher?.close();
    try {
      watched = identityOf(folder);
      watcher = watch(folder, { persistent: false }, () => {
        clearTimeout(timer);
        timer = setTimeout(check, QUIET_MILLISECONDS);
      });
      watcher.on('error', failed);
    } catch (error) {
      failed(error);
    }
  };
  const check = (): void => {
    if (identityOf(folder) !== watched) open();
    const now = stamp(path);
    // A file that is gone for a moment is about to come back.
    if (now === undefined || now === known) return;
    known = now;
    changed();
  };
  open();
  return () => {
    clearTimeout(timer);
    watcher?.close();
  };
}

/** Tells two states of a file apart; undefined where none can be seen, be it gone or a link in a circle. Links are followed. */
function stamp(path: string): string | undefined {
  const found = look(path);
  return found && `${found.ino} ${found.size} ${found.mtimeNs}`;
}

/** Which folder it is. The number alone is given again to the next one. */
function identityOf(path: string): string | undefined {
  const found = look(path);
  return found && `${found.ino} ${found.birthtimeNs}`;
}

function look(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true });
  } catch {
    return undefined;
  }
}
