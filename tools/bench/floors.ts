/**
 * The C floors: a folder of small C programs that are a flow proxy's system calls and nothing else. They are compiled into
 * .cache with their two ports taken from the environment, so that several live at once.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Contender } from './contenders.ts';
import { ROOT } from './paths.ts';

export type Floor = 'floor' | 'floor-gso';

const FRONT = 'BENCH_FRONT_PORT';
const BACK = 'BENCH_BACK_PORT';
/** The ports that the sources name, behind whichever front port is their own. */
const BACK_PORT = 'htons(7001)';
const FRONT_PORT = /htons\(7[46]00\)/;

/** `words` are arguments of the program; `folder` undefined means that none was named. */
export function floor(
  program: Floor,
  folder: string | undefined,
  { name = program, words = [] }: { name?: string; words?: readonly string[] } = {},
): Contender {
  const binary = join(ROOT, '.cache/bench', program);
  return {
    name,
    missing: () =>
      folder === undefined
        ? 'no folder with the C floors was named (--floor)'
        : compile(join(folder, `${program}.c`), binary),
    command: ({ port, backendPort }) => [
      'env',
      `${FRONT}=${port}`,
      `${BACK}=${backendPort}`,
      binary,
      ...words,
    ],
  };
}

/** Why there is no such program, if there is none. */
function compile(source: string, binary: string): string | undefined {
  if (!existsSync(source)) return `${source} is not there`;
  const text = readFileSync(source, 'utf8');
  if (!FRONT_PORT.test(text) || !text.includes(BACK_PORT)) return `${source} names other ports`;
  const fromEnvironment = (name: string): string => `htons(atoi(getenv("${name}")))`;
  const input = text
    .replace(FRONT_PORT, fromEnvironment(FRONT))
    .replaceAll(BACK_PORT, fromEnvironment(BACK));
  mkdirSync(join(binary, '..'), { recursive: true });
  const result = spawnSync('gcc', ['-O2', '-x', 'c', '-o', binary, '-'], {
    input,
    encoding: 'utf8',
  });
  if (result.error !== undefined) return `gcc: ${result.error.message}`;
  return result.status === 0 ? undefined : `gcc failed: ${result.stderr.split('\n')[0] ?? ''}`;
}
