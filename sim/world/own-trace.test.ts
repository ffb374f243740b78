import { expect, test } from 'vitest';
import { present } from '../../core/assert.ts';
import { worldNamed } from '../../scenarios/index.ts';
import { Observer } from '../properties.ts';
import { seedFromNumber } from '../seed.ts';
import { OwnTraces, type Taps } from './own-trace.ts';
import { runWorldSeed } from './run-world.ts';

const FLAP = present(worldNamed('backend-flap'), 'it is there');
const SEEDS = [0, 1, 2, 3, 4, 5].map(seedFromNumber);

test.each([
  ['from the beginning', 1_048_576],
  ['from a snapshot on the way', 16_384],
])('a trace replays %s, and recording it changes nothing', async (_, segmentBytes) => {
  for (const seed of SEEDS.slice(0, 3)) {
    const taps = new OwnTraces(segmentBytes);
    const observer = new Observer();
    const run = await runWorldSeed(FLAP, seed, { observer, taps });
    expect(taps.judge(observer)).toBeUndefined();
    const plain = await runWorldSeed(FLAP, seed, { observer: new Observer() });
    expect(run.digest).toBe(plain.digest);
    const counts = observer
      .counts()
      .find(({ name }) => name.startsWith('a trace of a process rep'));
    expect(counts?.hits).toBeGreaterThan(0);
  }
});

test('a trace that another machine is held to names the first input that goes otherwise', async () => {
  const problems: string[] = [];
  for (const seed of SEEDS) {
    const traces = new OwnTraces(1_048_576);
    const taps: Taps = {
      tap: (process) => {
        const { number, data, control, controlOptions, dataOptions } = process;
        const other = {
          ...dataOptions,
          placementSeed: { high: 9, low: 9 },
          randomSeed: { high: 9, low: 9 },
        };
        return traces.tap({ number, data, control, controlOptions, dataOptions: other });
      },
    };
    const observer = new Observer();
    await runWorldSeed(FLAP, seed, { observer, taps });
    const problem = traces.judge(observer);
    if (problem === undefined) continue;
    problems.push(problem);
    expect(observer.violations[0]?.name).toBe('a trace of a process replays to what was recorded');
  }
  expect(problems[0]).toMatch(
    /^process \d+: of \d+ inputs, number \d+ \(data \w+\) goes otherwise: /,
  );
});
