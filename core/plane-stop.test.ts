/** A soft stop that several data planes are to end together. */
import { expect, test } from 'vitest';
import { clusterSettings, configOf, PlaneBench } from '../test/plane-bench.ts';
import type { Directive } from './directives.ts';
import { instant } from './time.ts';

const DRAIN: Directive = { kind: 'Drain', deadline: instant(10_000_000), together: true };
const DRAINED = { kind: 'Drained', generation: 1 };

test('says once that the last flow has gone, and keeps its sockets until it is stopped', () => {
  const bench = benchOf();
  bench.turn(() => bench.client('a'));
  bench.turn(() => bench.direct(DRAIN));
  bench.reports.length = 0;
  bench.turn(() => bench.backend('b'));
  bench.turn(() => bench.client('c', '10.1.0.2:1'));
  expect(bench.reports).toEqual([DRAINED]);
  expect(bench.counters()).toMatchObject({ droppedShed: 1 });
  expect([...bench.ports.listening]).toEqual([0]);
  expect(bench.turn(() => bench.direct({ kind: 'Stop' }))).toContain('unlisten 0');
  expect(bench.reports.slice(1)).toEqual([{ kind: 'Stopped', generation: 1, flowsClosed: 0 }]);
});

test('ends at its deadline where nobody stops it before', () => {
  const bench = benchOf();
  bench.turn(() => bench.direct(DRAIN));
  expect(bench.reports.at(-1)).toEqual(DRAINED);
  expect(bench.ports.wake).toBe(instant(10_000_000));
  expect(bench.timer(10)).toContain('unlisten 0');
  expect(bench.reports.at(-1)).toMatchObject({ kind: 'Stopped', flowsClosed: 0 });
});

test('says so anew to whoever asks anew, and no more once it is over', () => {
  const bench = benchOf();
  bench.turn(() => bench.direct(DRAIN));
  bench.turn(() => bench.direct(DRAIN));
  bench.turn(() => bench.direct({ kind: 'Stop' }));
  bench.turn(() => bench.direct(DRAIN));
  expect(bench.reports.slice(1).map(({ kind }) => kind)).toEqual(['Drained', 'Drained', 'Stopped']);
});

/** A flow is over with its answer. */
function benchOf(): PlaneBench {
  return new PlaneBench(configOf([clusterSettings({ responses: 1 })]));
}
