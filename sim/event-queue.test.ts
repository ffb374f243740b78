import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { chiSquareFits } from '../test/chi-square.ts';
import { instant } from '../core/time.ts';
import { EventQueue } from './event-queue.ts';
import type { QueuedEvent } from './event-queue.ts';
import { seededStreams } from './random.ts';
import { seedFromNumber } from './seed.ts';

test('events come by time, each once, whatever was pushed and cancelled', () => {
  const command = fc.oneof(
    { weight: 5, arbitrary: fc.record({ push: fc.integer({ min: 0, max: 50 }) }) },
    { weight: 1, arbitrary: fc.record({ cancel: fc.nat() }) },
    { weight: 1, arbitrary: fc.constant({ pop: true }) },
  );
  fc.assert(
    fc.property(
      fc.nat(),
      fc.array(command, { minLength: 20, maxLength: 100 }),
      (seed, commands) => {
        const queue = queueOf(seed);
        let model: QueuedEvent<number>[] = [];
        const gone: QueuedEvent<number>[] = [];
        const drop = (event: QueuedEvent<number>): void => {
          model = model.filter((other) => other !== event);
          gone.push(event);
        };
        for (const [serial, action] of commands.entries()) {
          if ('push' in action) model.push(queue.push(instant(action.push), serial));
          else if ('cancel' in action && model.length > 0) {
            const event = model[action.cancel % model.length]!;
            expect(queue.cancel(event)).toBe(true);
            drop(event);
          } else if ('pop' in action) popEarliest(queue, model, drop);
          expect(queue.size).toBe(model.length);
        }
        for (const event of gone) expect(queue.cancel(event)).toBe(false);
        while (model.length > 0) popEarliest(queue, model, drop);
        expect(queue.pop()).toBeUndefined();
        expect(queue.nextAt()).toBeUndefined();
      },
    ),
  );
});

test('events of one instant come in every order, each equally often', () => {
  const counts = new Map<string, number>();
  for (let seed = 0; seed < 2_400; seed++) {
    const order = orderOf(seed);
    counts.set(order, (counts.get(order) ?? 0) + 1);
  }
  expect(counts.size).toBe(6);
  expect(chiSquareFits([...counts.values()], [1, 1, 1, 1, 1, 1])).toBe(true);
});

test('one seed gives one order', () => {
  expect(orderOf(17)).toBe(orderOf(17));
});

test('clearing leaves nothing', () => {
  const queue = queueOf(1);
  queue.push(instant(1), 1);
  queue.clear();
  expect(queue.pop()).toBeUndefined();
});

function queueOf(seed: number): EventQueue<number> {
  return new EventQueue<number>(seededStreams(seedFromNumber(seed)).sched);
}

function popEarliest(
  queue: EventQueue<number>,
  model: readonly QueuedEvent<number>[],
  drop: (event: QueuedEvent<number>) => void,
): void {
  const earliest = Math.min(...model.map(({ at }) => at));
  if (model.length > 0) expect(queue.nextAt()).toBe(earliest);
  const event = queue.pop();
  expect(event?.at).toBe(model.length > 0 ? earliest : undefined);
  if (event === undefined) return;
  expect(model).toContain(event);
  drop(event);
}

function orderOf(seed: number): string {
  const queue = queueOf(seed);
  for (const value of [1, 2, 3]) queue.push(instant(5), value);
  return [queue.pop(), queue.pop(), queue.pop()].map((event) => event?.value).join('');
}
