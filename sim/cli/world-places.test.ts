import { join } from 'node:path';
import { expect, test } from 'vitest';
import { WORLD_SCENARIOS } from '../../scenarios/index.ts';
import { readSources, scanProperties } from './property-scan.ts';

test('every place that worlds have to reach is named by a scenario', () => {
  const root = join(import.meta.dirname, '../..');
  const { catalogue } = scanProperties(readSources(root, ['sim/world']));
  const named = new Set(WORLD_SCENARIOS.flatMap(({ reaches }) => reaches));
  const places = catalogue.filter(({ path }) => path.startsWith('sim/world/coverage'));
  expect(places.length).toBeGreaterThan(50);
  expect(places.map(({ name }) => name).filter((name) => !named.has(name))).toEqual([]);
});
