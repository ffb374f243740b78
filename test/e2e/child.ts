/** A child process of a test: its lines, its exit, and its end when the test is over, however that went. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { onTestFinished } from 'vitest';
import { Mailbox } from './mailbox.ts';

/** With the folders of servers, which Debian leaves out of a user's PATH. */
export const PATH: string = `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin`;
/** Without a control socket, unless a configuration names one: the usual one is the same for every test. */
const ENVIRONMENT = { ...process.env, PATH, SOZU_UDP_SOCKET: '' };

const living = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of living) child.kill('SIGKILL');
});

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export class Child {
  readonly stdout: Mailbox<string>;
  readonly stderr: Mailbox<string>;
  /** When the process has ended and everything it wrote was read. */
  readonly exit: Promise<Exit>;
  private readonly process: ChildProcess;

  /** Starts `command`, looked up in PATH. To be called inside a test. */
  constructor(command: string, args: readonly string[]) {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: ENVIRONMENT });
    const name = `${command} (${child.pid})`;
    this.process = child;
    this.stdout = linesOf(child.stdout, `${name} stdout`);
    this.stderr = linesOf(child.stderr, `${name} stderr`);
    living.add(child);
    child.once('error', (error) => this.stderr.push(String(error)));
    this.exit = new Promise((resolve) => {
      child.once('close', (code, signal) => {
        living.delete(child);
        const reason = `but it ended with ${code ?? signal}; it said\n${this.everything()}`;
        this.stdout.close(reason);
        this.stderr.close(reason);
        resolve({ code, signal });
      });
    });
    onTestFinished(async () => {
      child.kill('SIGKILL');
      await this.exit;
    });
  }

  get pid(): number | undefined {
    return this.process.pid;
  }

  signal(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }

  /** Both streams, for failures. */
  everything(): string {
    return [...this.stdout.all, ...this.stderr.all].join('\n');
  }
}

/** Runs a command to its end. */
export async function runToEnd(
  command: string,
  args: readonly string[],
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = new Child(command, args);
  const { code } = await child.exit;
  return { code, stdout: child.stdout.all.join('\n'), stderr: child.stderr.all.join('\n') };
}

/** Runs a short command before this returns; throws if it fails. For set-up, and for clean-up after a test. */
export function runNow(command: string, args: readonly string[]): void {
  execFileSync(command, args, { env: ENVIRONMENT, stdio: 'pipe' });
}

function linesOf(stream: Readable, owner: string): Mailbox<string> {
  const lines = new Mailbox<string>(owner);
  createInterface({ input: stream }).on('line', (line) => lines.push(line));
  return lines;
}
