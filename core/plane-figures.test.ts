/** Figures of several planes, summed, read as those of one that had heard it all. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  addressOf,
  backendsOf,
  clusterSettings,
  configOf,
  PlaneBench,
} from '../test/plane-bench.ts';
import { figuresOf, flowsByBackend, sumFigures } from './plane-figures.ts';

const PLANES = 3;
const CONFIG = configOf([clusterSettings({ loadBalancing: 'HRW', backends: backendsOf(1, 2, 3) })]);

const arrivals = fc.array(
  fc.record({ client: fc.integer({ min: 1, max: 20 }), answered: fc.boolean() }),
  { maxLength: 60 },
);

test('the sum over planes that share the clients is what one plane counts', () => {
  fc.assert(
    fc.property(arrivals, (plan) => {
      const one = new PlaneBench(CONFIG);
      const several = Array.from({ length: PLANES }, () => new PlaneBench(CONFIG));
      for (const { client, answered } of plan) {
        for (const bench of [one, several[client % PLANES]!]) {
          const opened = bench.ports.opened.length;
          bench.turn(() => bench.client('ask', `10.1.0.${client}:1000`));
          const isNew = bench.ports.opened.length > opened;
          if (isNew && answered) bench.turn(() => bench.backend('told', opened + 1));
        }
      }
      const sum = sumFigures(several.map(({ plane }) => figuresOf(plane)));
      expect(sum).toEqual(figuresOf(one.plane));
      // What crosses threads is a copy of all of it.
      expect(structuredClone(sum)).toEqual(sum);
    }),
  );
});

test('flows on a backend are also those that chose it before it changed', () => {
  const bench = new PlaneBench(CONFIG);
  const ask = (from: number): void => {
    for (let client = from; client < from + 6; client += 1) {
      bench.turn(() => bench.client('ask', `10.1.0.${client}:1000`));
    }
  };
  ask(0);
  const [settings] = CONFIG.clusters;
  const backends = settings!.backends.map((one) => ({ ...one, weight: 50 }));
  bench.turn(() => bench.direct({ kind: 'SetCluster', settings: { ...settings!, backends } }));
  ask(100);
  const figures = figuresOf(bench.plane);
  const { cluster, backends: shown } = figures.clusters[0]!;
  const flowsAt = flowsByBackend(figures);
  const flows = shown.map(({ backend }) => flowsAt(cluster, backend.address));
  expect(flows.reduce((sum, one) => sum + one, 0)).toBe(12);
  expect(flows).toEqual(shown.map((one) => one.flows));
  expect(flowsAt(cluster, addressOf('10.9.9.9:9'))).toBe(0);
  expect(flowsAt('no such cluster', shown[0]!.backend.address)).toBe(0);
});
