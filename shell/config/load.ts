/**
 * Reads a configuration from disk, with an answer for everything that a path can turn out to be.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import type { Environment } from './environment.ts';
import { parseConfig, refuse, type Parsed } from './parse.ts';

/** Forty thousand backends fit; a larger file is something else. */
export const CONFIG_BYTES_MAX = 4_194_304;

/** Who waits for the writer of a pipe does nothing else: a start may, a proxy that serves may not. */
export type Pipes = 'awaited' | 'refused';

/** Reads and parses the file at `path`. Never throws: what the file system refuses is a problem like any other. */
export function loadConfig(
  path: string,
  environment: Environment,
  pipes: Pipes = 'awaited',
): Parsed {
  let descriptor: number | undefined;
  try {
    // An open of a pipe waits for its writer, unless told not to.
    const waiting = pipes === 'awaited' ? 0 : constants.O_NONBLOCK;
    descriptor = openSync(path, constants.O_RDONLY | waiting);
    const status = fstatSync(descriptor);
    if (status.isFIFO() && pipes === 'refused') {
      const problem = `${path} is a pipe, and is not awaited while datagrams come`;
      return refuse({ problem, fix: 'name a file' });
    }
    if (status.isDirectory())
      return refuse({ problem: `${path} is a directory`, fix: 'name a file' });
    if (!status.isFile() && !status.isFIFO()) {
      return refuse({ problem: `${path} is not a file`, fix: 'name a file' });
    }
    const bytes = status.size > CONFIG_BYTES_MAX ? undefined : readBounded(descriptor);
    if (bytes === undefined) {
      const problem = `${path} has more than ${CONFIG_BYTES_MAX} bytes`;
      return refuse({ problem, fix: 'name a configuration file' });
    }
    return parseConfig(bytes, environment);
  } catch (error) {
    return refuse(explain(path, error));
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** All there is, or undefined when it is too much: a pipe does not tell its size beforehand, and some never end. */
function readBounded(descriptor: number): Uint8Array | undefined {
  const bytes = new Uint8Array(CONFIG_BYTES_MAX + 1);
  for (let length = 0; length < bytes.length;) {
    const read = readSync(descriptor, bytes, length, bytes.length - length, null);
    if (read === 0) return bytes.subarray(0, length);
    length += read;
  }
  return undefined;
}

function explain(path: string, error: unknown): { problem: string; fix?: string } {
  const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return { problem: `${path} does not exist`, fix: 'check the path' };
    case 'EACCES':
    case 'EPERM':
      return { problem: `${path} may not be read`, fix: 'check its owner and mode' };
    default:
      return { problem: `${path} cannot be read (${code})` };
  }
}
