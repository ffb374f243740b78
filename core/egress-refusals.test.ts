/** Sends that meet the refusal of an earlier datagram: that is no want of room, so what follows them waits for none. */
import { expect, test } from 'vitest';
import { configOf, PlaneBench } from '../test/plane-bench.ts';
import type { SendFailed } from './ports.ts';

type Fate = SendFailed['cause'] | undefined;

test('a stale refusal costs nothing, however much follows in the turn', () => {
  const bench = new PlaneBench(configOf());
  fatesOf(bench, ['refused']);
  bench.turn(() => numbers(200).forEach((n) => bench.client(`${n}`)));
  expect(bench.ports.delivered).toEqual(numbers(200).map((n) => `u1 ${n}`));
  expect(bench.counters()).toMatchObject({ datagramsIn: 200, forwarded: 200, droppedWqFull: 0 });
  expect(bench.ports.watched.size).toBe(0);
});

test('what is sent again and finds no room waits in order, up to the bound', () => {
  const bench = new PlaneBench(configOf());
  fatesOf(bench, [undefined, 'refused'], [undefined, 'blocked']);
  bench.turn(() => numbers(100).forEach((n) => bench.client(`${n}`)));
  expect(bench.plane.waiting).toBe(64);
  bench.turn(() => bench.upstreamWritable());
  expect(bench.ports.delivered).toEqual(numbers(66).map((n) => `u1 ${n}`));
  expect(bench.counters()).toMatchObject({ forwarded: 66, droppedWqFull: 34 });
});

test('a second refusal in the turn loses the one that met it, and no other', () => {
  const bench = new PlaneBench(configOf());
  fatesOf(bench, ['refused'], ['refused']);
  bench.turn(() => numbers(4).forEach((n) => bench.client(`${n}`)));
  bench.turn(() => bench.upstreamWritable());
  expect(bench.ports.delivered).toEqual(['u1 1', 'u1 2', 'u1 3']);
  expect(bench.counters()).toMatchObject({ forwarded: 3, droppedSendError: 1, droppedWqFull: 0 });
});

test('a refusal in a later turn is no excuse for what finds no room in it', () => {
  const bench = new PlaneBench(configOf());
  fatesOf(bench, ['refused'], [], ['blocked'], ['refused']);
  bench.turn(() => bench.client('a'));
  bench.turn(() => numbers(70).forEach((n) => bench.client(`${n}`)));
  expect(bench.counters()).toMatchObject({ forwarded: 1, droppedWqFull: 6 });
  bench.turn(() => bench.upstreamWritable());
  bench.turn(() => bench.upstreamWritable());
  expect(bench.ports.delivered).toEqual(['u1 a', ...numbers(64).map((n) => `u1 ${n}`)]);
});

/** What becomes of the sends of each flush from now on, in order; all others go. */
function fatesOf(bench: PlaneBench, ...flushes: readonly (readonly Fate[])[]): void {
  let flush = -1;
  bench.ports.onFlush = () => {
    flush += 1;
  };
  bench.ports.fate = (number) => flushes[flush]?.[number];
}

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, number) => number);
}
