import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import { parseSync } from 'oxc-parser';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { plant, PLANTED_BUGS } from '../../test/planted-bugs.ts';
import { decodeReplay } from '../core-harness/replay-decode.ts';
import type * as replaying from './replay.ts';
import { registerReplay } from './replay.ts';
import type * as shrinking from './shrink.ts';
import { registerShrink } from './shrink.ts';

const cache = join(import.meta.dirname, '../../.cache/planted');
const BUG = PLANTED_BUGS.find(({ name }) => name === 'drops-counted-twice')!;

let directory = '';
let buggy: typeof shrinking & typeof replaying;

beforeAll(async () => {
  mkdirSync(cache, { recursive: true });
  directory = mkdtempSync(join(cache, 'cli-'));
  plant(BUG, join(directory, 'world'));
  const commands: [typeof shrinking, typeof replaying] = await Promise.all([
    import(join(directory, 'world/sim/cli/shrink.ts')),
    import(join(directory, 'world/sim/cli/replay.ts')),
  ]);
  buggy = { ...commands[0], ...commands[1] };
});

afterAll(() => rmSync(directory, { recursive: true }));

test('a failing seed is told as the few actions it needs', () => {
  const { text, code } = call(registerShrink, ['shrink', '--scenario', 'canary', '--seed', '0x0']);
  expect(text).toMatch(/^violated: the canary sings\n3 actions left after \d+ runs\n/);
  expect(text).toContain('\n  CloseAll\n  CloseAll\n  CloseAll\n');
  expect(code).toBeUndefined();
});

test('what only a scenario watches cannot become a file', () => {
  const out = join(directory, 'canary.json');
  const args = ['shrink', '--scenario', 'canary', '--seed', '0', '--out', out];
  expect(call(registerShrink, args).text).toContain('a replay cannot see it');
  expect(() => readFileSync(out)).toThrow('ENOENT');
});

test('a seed that holds says so with exit code 1', () => {
  const { text, code } = call(registerShrink, ['shrink', '--seed', '3', '--steps', '50']);
  expect(text).toBe('seed 0x3 of scenario default holds for 50 steps\n');
  expect(code).toBe(1);
});

test.each<[string, string[], string]>([
  ['no seed', [], '--seed'],
  ['an empty seed', ['--seed', ''], 'a seed is missing'],
  ['a seed that is none', ['--seed', 'x'], 'not a seed'],
  ['no step', ['--seed', '1', '--steps', '0'], 'expected a count above 0'],
  ['an unknown scenario', ['--seed', '1', '--scenario', 'x'], 'expected one of default, swarm'],
])('%s is a usage error', (_, args, problem) => {
  expect(() => call(registerShrink, ['shrink', ...args])).toThrow(CommanderError);
  expect(() => call(registerShrink, ['shrink', ...args])).toThrow(problem);
});

test('a file goes from reproduces, through the fix and a stale mark, to fixed', () => {
  const out = join(directory, 'some-bug.json');
  const shrunk = call(buggy.registerShrink, ['shrink', '--seed', '0', '--out', out]);
  expect(shrunk.text).toContain(`written to ${out}`);
  expect(decodeReplay(readFileSync(out, 'utf8'))).toMatchObject({
    ok: true,
    replay: {
      name: 'some-bug',
      outcome: 'reproduces',
      shows: 'Found by seed 0x0 of scenario default.',
    },
  });
  expect(call(buggy.registerReplay, ['replay', out])).toEqual({
    text: `${out}: reproduces\n`,
    code: undefined,
  });
  const unmarked = `${out}: fixed, but it is marked as reproduces\n`;
  expect(call(registerReplay, ['replay', out])).toEqual({ text: unmarked, code: 1 });
  expect(call(registerReplay, ['replay', '--accept', out]).text).toBe(`${out}: marked as fixed\n`);
  expect(call(registerReplay, ['replay', out]).text).toBe(`${out}: fixed\n`);
  const regressed = `${out}: reproduces, but it is marked as fixed\n`;
  expect(call(buggy.registerReplay, ['replay', out])).toEqual({ text: regressed, code: 1 });
});

test('a file that cannot be read as a replay is stale, and the others are run all the same', () => {
  const broken = join(directory, 'broken.json');
  writeFileSync(broken, '{"schema":1}');
  const good = join(import.meta.dirname, '../../replays/lost-wake-up.json');
  const { text, code } = call(registerReplay, ['replay', broken, good]);
  expect(text).toContain(`${broken}: stale: name missing, expected a name in kebab-case;`);
  expect(text).toContain(`${good}: fixed\n`);
  expect(code).toBe(1);
});

test('what stands in a file does not steer the terminal', () => {
  const steering = join(directory, 'steering.json');
  writeFileSync(steering, '{"\\u001b[2J\\u202e":1}');
  const { text } = call(registerReplay, ['replay', steering]);
  expect(text).toContain('\\u001b[2J\\u202e unknown field');
  expect(text.replaceAll('\n', '')).not.toMatch(/\p{Cc}|\p{Bidi_Control}/u);
});

test('a test is printed that stands by itself', () => {
  const { text } = call(buggy.registerShrink, ['shrink', '--seed', '0', '--test']);
  expect(parseSync('seed.test.ts', text).errors).toEqual([]);
  expect(text).toContain("from 'sozu-udp/sim'");
  expect(text).toContain('test("seed-0x0: outputs are exactly what the shadow model predicts"');
  expect(text).toContain('{"kind":"BackendDatagram","flow":{"by":"id","id":0}');
});

test('a failing seed of a world becomes a file that reproduces, and is fixed here', async () => {
  const out = join(directory, 'of-a-world.json');
  const args = ['shrink', '--scenario', 'syslog-one-way', '--seed', '0', '--out', out];
  const { text } = await callAsync(buggy.registerShrink, args);
  expect(text).toMatch(/^violated: [a-z ]+\n\w+ actions? left after /);
  expect(text).toMatch(/^1 proxy, 1 client, 1 backend; phases are not counted$/m);
  expect(text).toMatch(/^ {2}at \d\.\d{6} s: Send client 0, proxy 0, listener 0, bytes \d+$/m);
  expect(text).toContain(`written to ${out}`);
  expect(call(buggy.registerReplay, ['replay', out]).text).toBe(`${out}: reproduces\n`);
  const unmarked = `${out}: fixed, but it is marked as reproduces\n`;
  expect(call(registerReplay, ['replay', out])).toEqual({ text: unmarked, code: 1 });
  expect(call(registerReplay, ['replay', '--accept', out]).text).toBe(`${out}: marked as fixed\n`);
  expect(call(registerReplay, ['replay', out]).text).toBe(`${out}: fixed\n`);
});

test('a seed of a world that holds says so with exit code 1', async () => {
  const args = ['shrink', '--scenario', 'dns-burst', '--seed', '3'];
  const { text, code } = await callAsync(registerShrink, args);
  expect(text).toBe('seed 0x3 of scenario dns-burst holds\n');
  expect(code).toBe(1);
});

test('a trace that is none says so', () => {
  const broken = join(directory, 'broken.trace');
  writeFileSync(broken, Uint8Array.of(1, 2, 3));
  const { text, code } = call(registerReplay, ['replay', broken]);
  expect(text).toContain(`${broken}: unreadable at byte 0: not a trace of sozu-udp`);
  expect(code).toBe(1);
});

interface Called {
  readonly text: string;
  readonly code: typeof process.exitCode;
}

function call(register: (program: Command) => void, args: readonly string[]): Called {
  const { program, called } = prepared(register);
  program.parse(args, { from: 'user' });
  return called();
}

async function callAsync(
  register: (program: Command) => void,
  args: readonly string[],
): Promise<Called> {
  const { program, called } = prepared(register);
  await program.parseAsync(args, { from: 'user' });
  return called();
}

function prepared(register: (program: Command) => void): {
  readonly program: Command;
  readonly called: () => Called;
} {
  let text = '';
  const writeOut = (part: string): void => void (text += part);
  const program = new Command().configureOutput({ writeOut, writeErr: () => undefined });
  program.exitOverride();
  register(program);
  const called = (): Called => {
    const code = process.exitCode;
    process.exitCode = undefined;
    return { text, code };
  };
  return { program, called };
}
