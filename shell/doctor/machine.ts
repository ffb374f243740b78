/**
 * The machine that a doctor looks at, as one object: files of the kernel, addresses, and who answers at a socket. Tests give it
 * others. Nothing here needs root, and what a machine does not tell is undefined.
 */
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { availableParallelism } from 'node:os';
import { readEnvironment, type Environment } from '../config/environment.ts';
import { whatIsMissing } from '../planes/choose.ts';

/** What a connect to a Unix socket came to: `none`: there is no such file; `stale`: nobody listens. */
export type SocketAnswer = 'none' | 'stale' | 'alive' | 'denied';

export interface Machine {
  readonly environment: Environment;
  readonly processors: number;
  /** Why there are no batched system calls (`io = "mmsg"`); undefined where there are. */
  missingForBatches(): string | undefined;
  /** The text of a file, undefined when it cannot be read. */
  read(path: string): string | undefined;
  askSocket(path: string): Promise<SocketAnswer>;
}

/** This one. */
export function thisMachine(): Machine {
  return {
    environment: readEnvironment(),
    processors: availableParallelism(),
    missingForBatches: whatIsMissing,
    read: readText,
    askSocket,
  };
}

/** The first number in a file such as those below /proc/sys. */
export function numberIn(machine: Machine, path: string): number | undefined {
  const found = /^\s*(\d+)/.exec(machine.read(path) ?? '')?.[1];
  return found === undefined ? undefined : Number(found);
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

async function askSocket(path: string): Promise<SocketAnswer> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve('alive');
    });
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(answerOf(error.code)));
  });
}

function answerOf(code: string | undefined): SocketAnswer {
  if (code === 'ECONNREFUSED') return 'stale';
  return code === 'EACCES' || code === 'EPERM' ? 'denied' : 'none';
}
