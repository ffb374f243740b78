/**
 * Reads a configuration from disk, with an answer for everything that a path can turn out to be.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import type { Environment } from './environment.ts';
import { parseConfig, refuse, type Parsed } from './parse.ts';

/** Forty thousand backends fit; a larger file is something else. */
export const CONFIG_BYTES_MAX = 4_194_304;

/** Reads and parses the file at `path`. Never throws: what the file system refuses is a problem like any other. */
export function loadConfig(path: string, environment: Environment): Parsed {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, 'r');
    const status = fstatSync(descriptor);
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
