import { expect, test } from 'vitest';
import { BACKEND_FLAP } from '../../scenarios/world/backend-flap.ts';
import { CAP_SHRINK } from '../../scenarios/world/cap-shrink.ts';
import { ControlPlane } from '../../core/control-plane.ts';
import { Observer } from '../properties.ts';
import { seedFromNumber } from '../seed.ts';
import { brokenRelation, exchange, restoredRun, type Original } from './metamorphic.ts';
import { runWorldSeed } from './run-world.ts';

test('runs have what they should have in common with others like them', async () => {
  for (const scenario of [BACKEND_FLAP, CAP_SHRINK]) {
    const original = await run(1, scenario);
    expect(brokenRelation(original, new Observer())).toBeUndefined();
  }
});

test('a run that is another when played again is found', async () => {
  const original = await run(1);
  const broken = brokenRelation({ ...original, digest: 'another' }, new Observer());
  expect(broken?.property).toContain('a constant added to time');
});

test('machines that forget something do not go on as the first would have', async () => {
  const original = await run(2);
  const step = Math.floor((original.events - original.script.length) / 2);
  const observer = new Observer();
  expect(restoredRun(original, observer, step, exchange).digest).toBe(original.digest);
  const forgetful = restoredRun(original, observer, step, (process) => {
    process.control.machine = new ControlPlane(process.controlOptions);
  });
  expect(forgetful.digest).not.toBe(original.digest);
});

async function run(number: number, scenario = BACKEND_FLAP): Promise<Original> {
  const seed = seedFromNumber(number);
  const result = await runWorldSeed(scenario, seed, { observer: new Observer() });
  expect(result.violation).toBeUndefined();
  return { ...result, seed };
}
