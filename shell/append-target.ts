/**
 * Files that logs append to. Opening a named pipe that nobody reads would hold up the whole process, or a thread of it for
 * ever: such a pipe is refused, and one that is read is opened here.
 */
import { closeSync, constants, openSync, statSync } from 'node:fs';

/**
 * What a log is to write to: the name of `file`, once it was seen to open, or the descriptor of a named pipe. Throws when it
 * cannot be opened; ENXIO for a pipe without a reader.
 */
export function appendTarget(file: string): string | number {
  if (statSync(file, { throwIfNoEntry: false })?.isFIFO() === true) {
    return openSync(file, constants.O_WRONLY | constants.O_NONBLOCK);
  }
  closeSync(openSync(file, 'a'));
  return file;
}

/** Whether `file` is another one now than the one that is open: false for a pipe. Throws as `appendTarget` does. */
export function canReopen(file: string): boolean {
  const target = appendTarget(file);
  if (typeof target === 'string') return true;
  closeSync(target);
  return false;
}
