/** First in, first out, and no memory of what has left. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { OutputQueue } from './output-queue.ts';

test('in any order of pushes and polls the queue is an array with push and shift', () => {
  fc.assert(
    fc.property(fc.array(fc.option(fc.nat()), { maxLength: 200, size: 'max' }), (acts) => {
      const queue = new OutputQueue<number>();
      const model: number[] = [];
      for (const act of acts) {
        if (act === null) {
          expect(queue.poll()).toBe(model.shift());
        } else {
          queue.push(act);
          model.push(act);
        }
        expect(queue.pending).toBe(model.length);
      }
    }),
  );
});

test('what was polled is no longer held, and a burst gives its memory back', () => {
  const queue = new OutputQueue<object>();
  for (let n = 0; n < 5_000; n += 1) queue.push({});
  queue.poll();
  const items: unknown = Reflect.get(queue, 'items');
  if (!Array.isArray(items)) throw new Error('items are an array');
  expect(items[0]).toBeUndefined();
  expect(items).toHaveLength(5_000);
  while (queue.poll() !== undefined);
  expect(items).toHaveLength(0);
  const last = {};
  queue.push(last);
  expect(queue.poll()).toBe(last);
});
