import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DEFAULT } from '../scenarios/default.ts';
import { WARY } from '../scenarios/wary.ts';
import { decodeReplay } from '../sim/core-harness/replay-decode.ts';
import type * as replay from '../sim/core-harness/replay.ts';
import type * as run from '../sim/core-harness/run.ts';
import type * as shrinking from '../sim/core-harness/shrink.ts';
import type { Recording, Shrunk } from '../sim/core-harness/shrink.ts';
import { Observer } from '../sim/properties.ts';
import { seedFromNumber } from '../sim/seed.ts';
import { plant, PLANTED_BUGS, type PlantedBug } from '../test/planted-bugs.ts';

/** What stands on a core with a bug in it. */
type World = typeof shrinking & typeof replay & typeof run;

const cache = join(import.meta.dirname, '../.cache/planted');
const STEPS = 2_000;
const SEEDS = 16;

let directory = '';
const lengths: number[] = [];

beforeAll(() => {
  mkdirSync(cache, { recursive: true });
  directory = mkdtempSync(join(cache, 'replays-'));
});

afterAll(() => rmSync(directory, { recursive: true }));

describe.each(PLANTED_BUGS)('with $name planted', (bug) => {
  let world: World;
  let recording: Recording;
  let shrunk: Shrunk;

  beforeAll(async () => {
    world = await worldWith(bug);
    recording = firstFailure(world);
    shrunk = world.shrink(recording)!;
    lengths.push(shrunk.actions.length);
  });

  test('its replay reproduces', () => {
    const text = readFileSync(join(import.meta.dirname, `${bug.name}.json`), 'utf8');
    const decoding = decodeReplay(text);
    expect(decoding).toMatchObject({ ok: true, replay: { shows: bug.shows } });
    if (decoding.ok) expect(world.verifyReplay(decoding.replay)).toEqual({ kind: 'reproduces' });
  });

  test('a failing run shrinks, and keeps its property', () => {
    expect(shrunk).toMatchObject({ property: recording.property, isMinimal: true });
    expect(violated(world, shrunk)).toBe(recording.property);
    expect(world.makeReplay(bug.name, bug.shows, shrunk).outcome).toBe('reproduces');
  });

  test('removing any one action loses the violation', () => {
    for (const place of shrunk.actions.keys()) {
      const actions = shrunk.actions.toSpliced(place, 1);
      expect(violated(world, { ...shrunk, actions })).not.toBe(recording.property);
    }
  });

  test('shrinking it again gives the same', () => {
    expect(world.shrink(recording)).toEqual(shrunk);
  });

  test('a replay of it that expects another property is stale', () => {
    const replay = world.makeReplay(bug.name, bug.shows, shrunk);
    const other = 'in the end every flow drains away';
    expect(world.verifyReplay({ ...replay, property: other })).toMatchObject({ kind: 'stale' });
    expect(() => world.makeReplay('other', 'Another.', { ...shrunk, property: other })).toThrow(
      recording.property,
    );
  });
});

test('the median of the smallest runs has twelve actions at most', () => {
  expect(lengths).toHaveLength(PLANTED_BUGS.length);
  const middle = lengths.sort((one, other) => one - other)[lengths.length >> 1];
  expect(middle).toBeLessThanOrEqual(12);
});

async function worldWith(bug: PlantedBug): Promise<World> {
  const harness = join(directory, bug.name, 'sim/core-harness');
  plant(bug, join(directory, bug.name));
  const parts: [typeof shrinking, typeof replay, typeof run] = await Promise.all([
    import(join(harness, 'shrink.ts')),
    import(join(harness, 'replay.ts')),
    import(join(harness, 'run.ts')),
  ]);
  return { ...parts[0], ...parts[1], ...parts[2] };
}

function firstFailure({ recordSeed }: World): Recording {
  // Only the latter has limits on sources.
  for (const scenario of [DEFAULT, WARY]) {
    for (let number = 0; number < SEEDS; number += 1) {
      const recording = recordSeed(scenario, seedFromNumber(number), STEPS);
      if (recording !== undefined) return recording;
    }
  }
  throw new Error(`no violation in ${SEEDS} seeds of either`);
}

function violated({ runActions }: World, { initial, actions }: Recording): string | undefined {
  return runActions(initial, actions, { observer: new Observer() }).violation?.name;
}
