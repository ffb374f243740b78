/** What a data plane tells of its backends: through its pump, as the control plane hears it. */
import { expect, test } from 'vitest';
import { addressOf, clusterSettings, configOf, PlaneBench } from '../test/plane-bench.ts';
import type { Report } from './directives.ts';

const ONE = addressOf('10.0.0.1:53');
const TWO = addressOf('10.0.0.2:53');

test('a refusal is told with its backend and its flow, and only while the flow lives', () => {
  const bench = new PlaneBench(configOf());
  bench.turn(() => bench.client('a', '10.1.0.1:1'));
  bench.turn(() => bench.client('a', '10.1.0.2:1'));
  bench.turn(() => {
    bench.pump.refused(bench.socket(2));
    bench.pump.refused(bench.socket(1));
  });
  expect(evidence(bench)).toEqual([
    { kind: 'BackendRefused', cluster: 'c', address: TWO, flow: 2 },
    { kind: 'BackendRefused', cluster: 'c', address: ONE, flow: 1 },
  ]);
  bench.timer(30);
  bench.turn(() => bench.pump.refused(bench.socket(1)));
  expect(evidence(bench)).toHaveLength(2);
});

test('whoever is heard again after a refusal is told of once; others cost nothing', () => {
  const bench = new PlaneBench(configOf());
  for (const n of [1, 2]) bench.turn(() => bench.client('a', `10.1.0.${n}:1`));
  bench.turn(() => bench.pump.refused(bench.socket(1)));
  bench.turn(() => bench.backend('other', 2));
  bench.pass(1);
  bench.turn(() => bench.backend('here', 1));
  bench.pass(1);
  bench.turn(() => bench.backend('here', 1));
  bench.pass(1);
  bench.turn();
  expect(evidence(bench).slice(1)).toEqual([
    { kind: 'BackendTraffic', cluster: 'c', address: ONE, forwarded: 0, answered: 1 },
  ]);
});

test('where requests are answered both are counted, and told at most ten times a second', () => {
  const exchange = 'request-response';
  const bench = new PlaneBench(configOf([clusterSettings({ exchange })]));
  bench.turn(() => {
    for (let n = 0; n < 4; n += 1) bench.client('a', '10.1.0.1:1');
    bench.client('a', '10.1.0.2:1');
    bench.backend('b', 1);
  });
  bench.turn(() => bench.client('a', '10.1.0.1:1'));
  expect(evidence(bench)).toEqual([
    { kind: 'BackendTraffic', cluster: 'c', address: ONE, forwarded: 4, answered: 1 },
    { kind: 'BackendTraffic', cluster: 'c', address: TWO, forwarded: 1, answered: 0 },
  ]);
  bench.pass(0.1);
  bench.turn(() => bench.backend('b', 2));
  expect(evidence(bench).slice(2)).toEqual([
    { kind: 'BackendTraffic', cluster: 'c', address: ONE, forwarded: 1, answered: 0 },
    { kind: 'BackendTraffic', cluster: 'c', address: TWO, forwarded: 0, answered: 1 },
  ]);
});

test.each([
  { exchange: 'one-way' },
  { exchange: undefined },
  { exchange: 'request-response', passive: false },
] as const)('of a cluster that is not asked of nothing is counted: %o', (more) => {
  const bench = new PlaneBench(configOf([clusterSettings(more)]));
  bench.turn(() => bench.client('a'));
  bench.turn(() => bench.backend('b'));
  bench.pass(1);
  bench.turn();
  expect(evidence(bench)).toEqual([]);
});

function evidence(bench: PlaneBench): Report[] {
  return bench.reports.filter(({ kind }) => kind === 'BackendRefused' || kind === 'BackendTraffic');
}
