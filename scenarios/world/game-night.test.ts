import { expect, test } from 'vitest';
import { missedProperties, Observer, runWorldSeed, seedFromNumber } from '../../sim/index.ts';
import { GAME_NIGHT } from './game-night.ts';

test('the scenario of doc/SIMULATION.md holds, and reaches what it names', async () => {
  const observer = new Observer();
  for (let seed = 0; seed < 8; seed++) {
    const { violation, detail } = await runWorldSeed(GAME_NIGHT, seedFromNumber(seed), {
      observer,
    });
    expect(violation && detail, `seed ${seed}`).toBeUndefined();
  }
  const named = GAME_NIGHT.reaches.map((name) => ({ kind: 'sometimes', name }) as const);
  expect(missedProperties(named, observer.counts())).toEqual([]);
});
