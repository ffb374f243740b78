import { expect, test } from 'vitest';
import { seededStreams } from '../random.ts';
import { seedFromNumber } from '../seed.ts';
import { HOST_FAMILIES, LINK_FAMILIES } from './chaos-families.ts';
import { drawFamilies } from './chaos.ts';

const SEEDS = Array.from({ length: 400 }, (_, number) => seedFromNumber(number));

test('a family is on in its share of the seeds, whatever other families there are', () => {
  let on = 0;
  for (const seed of SEEDS) {
    const draw = (
      families: typeof LINK_FAMILIES | [...typeof LINK_FAMILIES, ...typeof HOST_FAMILIES],
    ) => drawFamilies(seededStreams(seed).config, { families, percent: 25 });
    const few = draw(LINK_FAMILIES);
    const more = draw([...LINK_FAMILIES, ...HOST_FAMILIES]);
    expect(more.slice(0, few.length)).toEqual(few);
    if (few.includes('loss')) on += 1;
  }
  expect(on).toBeGreaterThan(70);
  expect(on).toBeLessThan(130);
});

test('what a scenario is about is on in every seed', () => {
  for (const seed of SEEDS) {
    const { config } = seededStreams(seed);
    expect(drawFamilies(config, { always: ['crash'], families: ['mute'] })[0]).toBe('crash');
  }
});
