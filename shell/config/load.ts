/**
 * Reads a configuration from disk, with an answer for everything that a path can turn out to be.
 */
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
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
    if (status.size > CONFIG_BYTES_MAX) {
      const problem = `${path} has ${status.size} bytes, more than ${CONFIG_BYTES_MAX}`;
      return refuse({ problem, fix: 'name a configuration file' });
    }
    return parseConfig(readFileSync(descriptor), environment);
  } catch (error) {
    return refuse(explain(path, error));
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
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
