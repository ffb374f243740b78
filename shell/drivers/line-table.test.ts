import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { listenerId, socketId, type SocketId } from '../../core/index.ts';
import { UpstreamLine } from './channel.ts';
import { LineTable } from './line-table.ts';

/** Few, and some of them in one place: serials that are far apart, and listeners that share a serial. */
const ids = fc
  .tuple(fc.constantFrom(1, 2, 16_385, 32_769, 2 ** 40), fc.constantFrom(0, 1))
  .map(([serial, listener]) => socketId(serial, listenerId(listener)));
const steps = fc.array(fc.tuple(fc.constantFrom('add', 'take'), ids), { maxLength: 60 });

test('finds exactly the lines that are there, whoever displaced whom', () => {
  fc.assert(
    fc.property(steps, fc.array(ids), (plan, asked) => {
      const table = new LineTable();
      const expected = new Map<SocketId, UpstreamLine>();
      for (const [step, id] of plan) {
        if (step === 'take') {
          expect(table.take(id)).toBe(expected.get(id));
          expected.delete(id);
        } else if (!expected.has(id)) {
          const line = new UpstreamLine(3, 4, 0, id);
          table.add(line);
          expected.set(id, line);
        }
        for (const one of [id, ...asked]) expect(table.get(one)).toBe(expected.get(one));
        expect(table.size).toBe(expected.size);
      }
    }),
    { numRuns: 500 },
  );
});
