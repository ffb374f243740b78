import { expect, test } from 'vitest';
import { runSum } from './result.ts';
import { runChunk, type ChunkTask, type Listener } from './run-chunk.ts';

const TASK: ChunkTask = {
  scenario: 'default',
  steps: 60,
  seeds: [3, 4].map((low) => ({ seed: { high: 0, low }, repetition: 'once' })),
  bail: false,
};

test('a chunk sums up its runs, and a second run in one process is the same', () => {
  const { leg, lines } = runChunk(TASK);
  expect(leg).toMatchObject({ seeds: 2, steps: 120, failed: 0, repeated: 0, fresh: 0 });
  expect(lines).toEqual([
    expect.stringMatching(/^default 0x3 [0-9a-f]{16}$/),
    expect.stringMatching(/^default 0x4 [0-9a-f]{16}$/),
  ]);
  const sums = lines.map((line, index) =>
    runSum('default', { high: 0, low: 3 + index }, line.split(' ')[2] ?? ''),
  );
  expect(leg.sum).toBe(
    BigInt.asUintN(
      64,
      sums.reduce((sum, one) => sum + one),
    ),
  );
  expect(runChunk(TASK)).toMatchObject({ leg, lines });
});

test('actions, drops and closes are those of the outputs', () => {
  const drops: string[] = [];
  let actions = 0;
  const listener: Listener = {
    action: () => (actions += 1),
    call: (_name, _now, outputs) => {
      for (const output of outputs) {
        if (output.kind === 'Drop' || output.kind === 'CloseFlow') drops.push(output.reason);
      }
    },
  };
  const { leg } = runChunk(TASK, undefined, listener);
  const total = (counts: Readonly<Record<string, number>>): number =>
    Object.values(counts).reduce((sum, count) => sum + count, 0);
  expect(total(leg.actions)).toBe(actions);
  expect(total(leg.drops) + total(leg.closes)).toBe(drops.length);
  expect(leg.drops['Truncated']).toBe(drops.filter((reason) => reason === 'Truncated').length);
  expect(leg.closes['Idle']).toBe(drops.filter((reason) => reason === 'Idle').length);
});

test('the place of a seed is told before it is run', () => {
  const places: number[] = [];
  runChunk(TASK, (place) => places.push(place));
  expect(places).toEqual([0, 1]);
});

test('with bail a chunk ends at its first failure', () => {
  const canary: ChunkTask = { ...TASK, scenario: 'canary', steps: 3_000 };
  expect(runChunk(canary).leg.failed).toBe(2);
  expect(runChunk({ ...canary, bail: true }).leg).toMatchObject({ seeds: 1, failed: 1 });
});

test('a failure keeps the last ten actions, the violating one last', () => {
  const { failures } = runChunk({ ...TASK, scenario: 'canary', steps: 3_000, bail: true }).leg;
  const actions = failures[0]?.actions ?? [];
  expect(actions).toHaveLength(10);
  expect(actions.at(-1)).toBe(`step ${failures[0]?.step}: CloseAll`);
});

test('repeating a seed changes no count', () => {
  const again = TASK.seeds.map(({ seed }) => ({ seed, repetition: 'again' as const }));
  const { leg } = runChunk({ ...TASK, seeds: again });
  expect(leg).toEqual({ ...runChunk(TASK).leg, repeated: 2 });
});
