import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { present } from '../../core/assert.ts';
import { worldNamed } from '../../scenarios/index.ts';
import { plant, PLANTED_BUGS } from '../../test/planted-bugs.ts';
import { Observer } from '../properties.ts';
import { seedFromNumber } from '../seed.ts';
import type { Script } from './actions.ts';
import type * as running from './run-world.ts';
import { decodeWorldReplay, encodeWorldReplay, verifyWorldReplay } from './world-replay.ts';
import type * as replaying from './world-replay.ts';
import type { WorldRecording } from './world-replay.ts';
import type * as shrinking from './world-shrink.ts';
import { shrinkWorldSeed, type ShrunkWorld } from './world-shrink.ts';

/** What stands on a core with a bug in it. */
type Program = typeof shrinking & typeof replaying & typeof running;

/** Bugs of different kinds, each where a scenario meets it soon. */
const FOUND = [
  ['merged-sockets', 'dns-burst'],
  ['drops-counted-twice', 'syslog-one-way'],
  ['one-flow-too-many', 'reconfig-storm'],
  ['draining-admits', 'drain-under-load'],
] as const;
const SEEDS = 4;

const cache = join(import.meta.dirname, '../../.cache/planted');
let directory = '';
const lengths: number[] = [];

beforeAll(() => {
  mkdirSync(cache, { recursive: true });
  directory = mkdtempSync(join(cache, 'worlds-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

describe.each(FOUND)('with %s planted, a failing seed of %s', (name, scenario) => {
  let program: Program;
  let recording: WorldRecording;
  let shrunk: ShrunkWorld;

  beforeAll(async () => {
    program = await programWith(name);
    recording = await firstFailure(program, scenario);
    shrunk = present(program.shrinkWorld(recording), 'it fails');
    lengths.push(shrunk.actions);
  }, 120_000);

  test('shrinks to twenty actions at most, and keeps its property', () => {
    expect(shrunk).toMatchObject({ property: recording.property, isMinimal: true });
    expect(shrunk.actions).toBeLessThanOrEqual(20);
    expect(violated(program, shrunk, shrunk.script)).toBe(recording.property);
  });

  test('loses the violation with any one action', () => {
    for (const [place, { action }] of shrunk.script.entries()) {
      if (action.kind === 'Begin') continue;
      const script = shrunk.script.toSpliced(place, 1);
      expect(violated(program, shrunk, script)).not.toBe(recording.property);
    }
  });

  test('lives on in a file that reproduces there, and is fixed here', () => {
    const text = encodeWorldReplay(program.makeWorldReplay(name, 'Something.', shrunk));
    const decoding = decodeWorldReplay(text);
    if (!decoding.ok) throw new Error(JSON.stringify(decoding.problems));
    const { replay } = decoding;
    expect(replay.outcome).toBe('reproduces');
    expect(program.verifyWorldReplay(replay)).toEqual({ kind: 'reproduces' });
    expect(verifyWorldReplay(replay)).toEqual({ kind: 'fixed' });
  });
});

test('the median of what is left is ten actions at most', () => {
  expect(lengths).toHaveLength(FOUND.length);
  const middle = lengths.sort((one, other) => one - other)[lengths.length >> 1];
  expect(middle).toBeLessThanOrEqual(10);
});

test('shrinking again gives the same, and less work another end', async () => {
  const program = await programWith('drops-counted-twice', 'again');
  const recording = await firstFailure(program, 'syslog-one-way');
  expect(program.shrinkWorld(recording)).toEqual(program.shrinkWorld(recording));
  const hurried = program.shrinkWorld(recording, { runs: 3, events: 1_000_000 });
  expect(hurried).toMatchObject({ isMinimal: false, runs: 3, property: recording.property });
});

test('a seed that holds has nothing to shrink', async () => {
  const scenario = present(worldNamed('dns-burst'), 'it is there');
  expect(await shrinkWorldSeed(scenario, seedFromNumber(0))).toBeUndefined();
});

async function programWith(name: string, folder = name): Promise<Program> {
  const bug = present(
    PLANTED_BUGS.find((one) => one.name === name),
    'it is among them',
  );
  plant(bug, join(directory, folder));
  const world = join(directory, folder, 'sim/world');
  const parts: [typeof shrinking, typeof replaying, typeof running] = await Promise.all([
    import(join(world, 'world-shrink.ts')),
    import(join(world, 'world-replay.ts')),
    import(join(world, 'run-world.ts')),
  ]);
  return { ...parts[0], ...parts[1], ...parts[2] };
}

async function firstFailure(program: Program, name: string): Promise<WorldRecording> {
  const scenario = present(worldNamed(name), 'it is there');
  for (let number = 0; number < SEEDS; number += 1) {
    const recording = await program.recordWorldSeed(scenario, seedFromNumber(number));
    if (recording !== undefined) return recording;
  }
  throw new Error(`no violation in ${SEEDS} seeds of ${name}`);
}

function violated(
  program: Program,
  { spec, seed }: ShrunkWorld,
  script: Script,
): string | undefined {
  return program.runScript(spec, script, seed, { observer: new Observer() }).violation?.name;
}
