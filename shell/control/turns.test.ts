/** No two clients have their turn in the same one of the event loop. */
import { expect, test } from 'vitest';
import { Turns } from './turns.ts';

test('one at a time, in order, each in a turn of the loop of its own, however many wait', async () => {
  const turns = new Turns();
  let loop = 0;
  let isOver = false;
  const count = (): void => {
    loop += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const served: [client: number, loop: number][] = [];
  const client = async (name: number): Promise<void> => {
    for (let request = 0; request < 5; request += 1) {
      await turns.next();
      served.push([name, loop]);
    }
  };
  await Promise.all(Array.from({ length: 64 }, (_, name) => client(name)));
  isOver = true;
  expect(new Set(served.map(([, turn]) => turn)).size).toBe(64 * 5);
  expect(served.slice(0, 64).map(([name]) => name)).toEqual(
    Array.from({ length: 64 }, (_, n) => n),
  );
  expect(served.slice(64, 128).map(([name]) => name)).toEqual(
    served.slice(0, 64).map(([name]) => name),
  );
});
