import { expect, test } from 'vitest';
import { WORLD_SCENARIOS } from '../../../scenarios/world-scenarios.ts';
import { seedFromNumber } from '../../seed.ts';
import { judge, recordRun, replaced, without, type RecordedRun } from '../history.ts';
import { replays, TRACES_REPLAY } from './replays.ts';

const EVERY = replays(1);

for (const scenario of WORLD_SCENARIOS) {
  test(`what ${scenario.name} does is replayed from its traces`, async () => {
    const run = await recordRun(scenario, seedFromNumber(3));
    expect(judge(EVERY, run)).toBeUndefined();
  });
}

test('a history that lacks an output, or has another, is found', async () => {
  const [scenario] = WORLD_SCENARIOS;
  const run = await recordRun(scenario!, seedFromNumber(1));
  const at = run.history.findIndex(
    ({ kind, fact }) => kind === 'DataOutput' && fact.output.kind === 'SendToClient',
  );
  const objected = { property: 'a trace replays to the recorded outputs' };
  expect(judge(EVERY, { ...run, history: without(run.history, at) })).toMatchObject(objected);
  const told = run.history[at]!;
  if (told.kind !== 'DataOutput' || told.fact.output.kind !== 'SendToClient') throw new Error();
  const { dst } = told.fact.output;
  const output = { ...told.fact.output, dst: { ...dst, port: dst.port ^ 1 } };
  const wrong = replaced(run.history, at, { ...told, fact: { ...told.fact, output } });
  expect(judge(EVERY, { ...run, history: wrong })).toMatchObject(objected);
});

test('one run in sixteen is asked', async () => {
  const [scenario] = WORLD_SCENARIOS;
  const run = await recordRun(scenario!, seedFromNumber(1));
  const at = run.history.findIndex(({ kind }) => kind === 'DataOutput');
  const asked = Array.from({ length: 32 }, (_, low) => {
    const broken: RecordedRun = { spec: seeded(run, low), history: without(run.history, at) };
    return judge(TRACES_REPLAY, broken) === undefined ? 0 : 1;
  });
  expect(asked.reduce((sum: number, one) => sum + one, 0)).toBe(2);
});

function seeded({ spec }: RecordedRun, low: number): RecordedRun['spec'] {
  const proxies = spec.proxies.map((proxy) => ({ ...proxy, randomSeed: { high: 1, low } }));
  return { ...spec, proxies };
}
