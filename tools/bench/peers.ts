/**
 * The two ends of a paired run: the C programs of peers.c where a compiler can be had, their Node
 * twins elsewhere.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { built, ROOT } from './paths.ts';

export interface Load {
  readonly flows: number;
  /** Datagrams that each flow keeps in flight. */
  readonly window: number;
  /** Payload of each, at least 4. */
  readonly bytes: number;
}

export interface Peers {
  readonly kind: 'C' | 'Node';
  readonly echo: readonly string[];
  load(port: number, load: Load): readonly string[];
}

/** The faster peers that this machine can have; `note` hears why when those are the Node ones. */
export function preparePeers(note: (text: string) => void): Peers {
  const program = join(ROOT, '.cache/bench/peers');
  const problem = compile(join(ROOT, 'tools/bench/peers.c'), program);
  if (problem === undefined) return nativePeers(program);
  note(`load and echo run in Node, slower than what they load: ${problem}`);
  return nodePeers();
}

export function nodePeers(): Peers {
  return {
    kind: 'Node',
    echo: [process.execPath, built('tools/bench/echo.js')],
    load: (port, load) => [process.execPath, built('tools/bench/load.js'), ...words(port, load)],
  };
}

function nativePeers(program: string): Peers {
  return {
    kind: 'C',
    echo: [program, 'echo'],
    load: (port, load) => [program, 'load', ...words(port, load)],
  };
}

function words(port: number, { flows, window, bytes }: Load): string[] {
  return [port, flows, window, bytes].map(String);
}

function compile(source: string, program: string): string | undefined {
  if (existsSync(program) && statSync(program).mtimeMs > statSync(source).mtimeMs) return undefined;
  mkdirSync(join(program, '..'), { recursive: true });
  const draft = `${program}.${process.pid}`;
  const result = spawnSync('gcc', ['-O2', '-o', draft, source], { encoding: 'utf8' });
  if (result.error !== undefined) return `gcc: ${result.error.message}`;
  if (result.status !== 0) return `gcc failed: ${result.stderr.split('\n')[0] ?? ''}`;
  renameSync(draft, program);
  return undefined;
}
