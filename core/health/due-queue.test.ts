/** The heap against a Map and a scan. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { instant } from '../time.ts';
import { DueQueue } from './due-queue.ts';

test('under any sets, moves and removals the first is that of a scan, ties by number', () => {
  const act = fc.record({ number: fc.nat(12), at: fc.nat(20), remove: fc.boolean() });
  fc.assert(
    fc.property(fc.array(act, { maxLength: 200, size: 'max' }), (acts) => {
      const queue = new DueQueue();
      const model = new Map<number, number>();
      for (const { number, at, remove } of acts) {
        if (remove) {
          queue.remove(number);
          model.delete(number);
        } else {
          queue.set(number, instant(at));
          model.set(number, at);
        }
        const [first] = [...model].sort((one, other) => one[1] - other[1] || one[0] - other[0]);
        const found = queue.first();
        expect(found && [found.number, found.at]).toEqual(first);
        expect(queue.size).toBe(model.size);
        expect(queue.of(number)).toBe(model.get(number));
      }
    }),
    { numRuns: 500 },
  );
});
