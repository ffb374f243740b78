/**
 * Child processes of a bench: started on a processor of their own, spoken to in lines, their
 * processor time read from the kernel, and gone when the bench is. Linux only: there is no other
 * place to ask for a thread's time in nanoseconds.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export interface Program {
  readonly name: string;
  readonly pid: number;
  /**
   * The next line of stdout or stderr that matches; others are dropped. Rejects when the program
   * ends or is silent.
   */
  waitFor(pattern: RegExp, timeoutMs?: number): Promise<string>;
  /** Writes one line to stdin. */
  say(line: string): void;
  /** Settles when the program is gone, with its last words. */
  readonly ended: Promise<Error>;
  stop(): Promise<void>;
}

interface Waiter {
  readonly pattern: RegExp;
  readonly found: (line: string) => void;
  readonly failed: (error: Error) => void;
}

const SILENCE_MS = 20_000;
const running = new Set<ChildProcess>();
process.once('exit', () => {
  killAll();
  removeScratch();
});
let scratch: string | undefined;

/** A new folder for what programs of this bench read and write. It goes with `removeScratch`, or when the bench ends. */
export function scratchFolder(): string {
  scratch ??= mkdtempSync(join(tmpdir(), 'sozu-udp-bench-'));
  return mkdtempSync(join(scratch, 'run-'));
}

export function removeScratch(): void {
  if (scratch !== undefined) rmSync(scratch, { recursive: true, force: true });
  scratch = undefined;
}

/**
 * Ends every program still running, at once: for the way out, when nothing can be awaited any more.
 */
export function killAll(): void {
  for (const child of running) killTree(child.pid);
}

/** Starts `command`, on `processors` (such as `0` or `0,1`) alone when they are given. */
export function start(
  name: string,
  command: readonly string[],
  processors: string | undefined,
): Program {
  const pinned = processors === undefined ? command : ['taskset', '-c', processors, ...command];
  const [file = '', ...words] = pinned;
  const child = spawn(file, words, { stdio: ['pipe', 'pipe', 'pipe'] });
  running.add(child);
  let waiter: Waiter | undefined;
  let lastLines: string[] = [];
  const settle = (): Waiter | undefined => {
    const settled = waiter;
    waiter = undefined;
    return settled;
  };
  const hear = (line: string): void => {
    lastLines = [...lastLines.slice(-4), line];
    if (waiter?.pattern.test(line) === true) settle()?.found(line);
  };
  const end = (why: string): Error => {
    running.delete(child);
    const error = new Error([`${name} ended (${why})`, ...lastLines].join('\n'));
    settle()?.failed(error);
    return error;
  };
  createInterface({ input: child.stdout }).on('line', hear);
  createInterface({ input: child.stderr }).on('line', hear);
  // A write to a program just gone: `ended` says more.
  child.stdin.on('error', () => undefined);
  const ended = new Promise<Error>((resolve) => {
    child.on('error', (error) => resolve(end(error.message)));
    child.on('close', (code, signal) => resolve(end(`${signal ?? code}`)));
  });
  return {
    name,
    pid: child.pid ?? 0,
    ended,
    waitFor: async (pattern, timeoutMs = SILENCE_MS) => {
      let timer: NodeJS.Timeout | undefined;
      try {
        return await new Promise<string>((found, failed) => {
          waiter = { pattern, found, failed };
          const silent = new Error(`${name} did not print ${pattern} in ${timeoutMs} ms`);
          timer = setTimeout(() => settle()?.failed(silent), timeoutMs);
          if (!running.has(child)) end('before it was asked');
        });
      } finally {
        clearTimeout(timer);
      }
    },
    say: (line) => {
      child.stdin.write(`${line}\n`);
    },
    stop: async () => {
      killTree(child.pid);
      await ended;
    },
  };
}

/** What a program prints that ends by itself; rejects when it fails. */
export async function textOf(
  command: readonly string[],
  processors: string | undefined,
): Promise<string> {
  const pinned = processors === undefined ? command : ['taskset', '-c', processors, ...command];
  const [file = '', ...words] = pinned;
  const child = spawn(file, words, { stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      text += String(chunk);
    });
  }
  const [code] = await once(child, 'close').finally(() => running.delete(child));
  if (code !== 0) throw new Error(`${file} ended (${String(code)})\n${text}`);
  return text;
}

/**
 * Nanoseconds that all threads of a process and of its children have run, exact while they sleep; not a number when it is gone.
 */
export function processorTime(pid: number): number {
  if (!existsSync(`/proc/${pid}/task`)) return Number.NaN;
  let total = 0;
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const [ran] = readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ');
    total += Number(ran);
  }
  return childrenOf(pid).reduce((sum, child) => sum + processorTime(child), total);
}

/** Resolves when a UDP socket is bound to this port of any address, as a program does that is ready. */
export async function untilBound(port: number, patienceMs: number = SILENCE_MS): Promise<void> {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const end = performance.now() + patienceMs;
  while (!readFileSync('/proc/net/udp', 'utf8').includes(`${suffix} 00000000:0000`)) {
    if (performance.now() > end) throw new Error(`nobody listens on port ${port}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The master of nginx does not take its worker with it when it is killed. */
function killTree(pid: number | undefined): void {
  if (pid === undefined || !existsSync(`/proc/${pid}`)) return;
  const children = childrenOf(pid);
  process.kill(pid, 'SIGKILL');
  for (const child of children) killTree(child);
}

function childrenOf(pid: number): number[] {
  const path = `/proc/${pid}/task/${pid}/children`;
  return existsSync(path)
    ? readFileSync(path, 'utf8').trim().split(' ').filter(Boolean).map(Number)
    : [];
}

/**
 * One processor for the program under test and one for its peers; undefined where they cannot be had.
 */
export interface Placement {
  readonly proxy: string | undefined;
  readonly peers: string | undefined;
}

export function placement(): Placement {
  const allowed = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'));
  const [proxy, peers] = parseProcessorList(allowed?.[1] ?? '');
  const pinning = spawnSync('taskset', ['--version']).status === 0 && peers !== undefined;
  return pinning
    ? { proxy: `${proxy}`, peers: `${peers}` }
    : { proxy: undefined, peers: undefined };
}

/** Both of them, for a program with more than one worker, and for its peers then. */
export function together({ proxy, peers }: Placement): Placement {
  const both = proxy === undefined ? undefined : `${proxy},${peers}`;
  return { proxy: both, peers: both };
}

/** `0-2,5` is 0, 1, 2, 5. */
export function parseProcessorList(text: string): number[] {
  return [...text.matchAll(/(\d+)(?:-(\d+))?/g)].flatMap(([, first, last = first]) =>
    Array.from({ length: Number(last) - Number(first) + 1 }, (_, at) => Number(first) + at),
  );
}
