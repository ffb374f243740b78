import { expect, test } from 'vitest';
import { DNS_BURST } from '../../scenarios/world/dns-burst.ts';
import { instant, milliseconds } from '../../core/time.ts';
import { Observer } from '../properties.ts';
import { seedFromNumber } from '../seed.ts';
import type { ScriptEntry } from './actions.ts';
import { backendList, configOf, proxyOf, worldOf } from './builders.ts';
import { runScript, runWorldSeed } from './run-world.ts';

const SEEDS = [0, 1, 2].map(seedFromNumber);

test('a seed does the same twice, and another seed does something else', async () => {
  const runs = [];
  for (const seed of [...SEEDS, seedFromNumber(0)]) {
    runs.push(await runWorldSeed(DNS_BURST, seed, { observer: new Observer() }));
  }
  const digests = runs.map(({ digest }) => digest);
  expect(digests[3]).toBe(digests[0]);
  expect(new Set(digests).size).toBe(3);
});

test('a script is the run that it was written down from', async () => {
  for (const seed of SEEDS) {
    const run = await runWorldSeed(DNS_BURST, seed, { observer: new Observer() });
    const again = runScript(run.spec, run.script, seed, { observer: new Observer() });
    expect(run.script.length).toBeGreaterThan(200);
    expect(again.digest).toBe(run.digest);
    expect(again.events).toBe(run.events);
    expect(again.violation).toBeUndefined();
  }
});

test('a run with a script in which something is left out is another run', async () => {
  const [seed] = SEEDS;
  if (seed === undefined) throw new Error('there are seeds');
  const run = await runWorldSeed(DNS_BURST, seed, { observer: new Observer() });
  const first = run.script.findIndex(({ action }) => action.kind === 'Send');
  const shorter = run.script.toSpliced(first, 1);
  const again = runScript(run.spec, shorter, seed, { observer: new Observer() });
  expect(again.digest).not.toBe(run.digest);
});

test('a failure that a slow process has not heard of is counted as such', () => {
  const proxies = [proxyOf(configOf({ backends: backendList(1) }))];
  const faults = {
    lateFailures: { numerator: 1, denominator: 1 },
    wakeLatency: milliseconds(30),
  };
  const script: ScriptEntry[] = [
    {
      at: instant(1),
      action: { kind: 'HostFault', proxy: 0, faults, lasts: milliseconds(1_000) },
    },
  ];
  for (let at = 1; at < 20; at++) {
    const [send, count] = [instant(at * 10_000), instant(at * 10_000 + 7_000)];
    script.push({
      at: send,
      action: { kind: 'Send', client: 0, proxy: 0, listener: 0, bytes: 40 },
    });
    script.push({ at: count, action: { kind: 'Begin', phase: 'chaos' } });
  }
  let untold = 0;
  const spec = worldOf({ clients: 1, backends: 1 }, { proxies });
  const { violation, detail } = runScript(spec, script, seedFromNumber(0), {
    observer: new Observer(),
    listen: (hub) => hub.join({ Counted: ({ kernelOut }) => void (untold += kernelOut.untold) }),
  });
  expect(violation && detail).toBeUndefined();
  expect(untold).toBeGreaterThan(0);
});
