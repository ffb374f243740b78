import { expect, test } from 'vitest';
import { Progress } from './progress.ts';

function progress(isTerminal: boolean): {
  readonly written: string[];
  readonly bar: Progress;
  readonly tick: (seconds: number) => void;
} {
  const written: string[] = [];
  let now = 100;
  const bar = new Progress(400, {
    isTerminal,
    write: (text) => written.push(text),
    now: () => now,
  });
  return { written, bar, tick: (seconds) => (now += seconds) };
}

test('a terminal sees a bar with seeds, steps and the time left, redrawn in place', () => {
  const { written, bar, tick } = progress(true);
  tick(2);
  bar.add(100, 300_000);
  expect(written).toEqual([
    '\r[######..................] 25 % of 400 seeds, 50 seeds/s, 150,000 steps/s, 6 s left\u001b[K',
  ]);
  bar.add(1, 3_000);
  expect(written).toHaveLength(1);
  bar.end();
  expect(written.at(-1)).toBe('\r\u001b[K');
});

test('elsewhere a plain line now and then', () => {
  const { written, bar, tick } = progress(false);
  tick(1);
  bar.add(1, 3_000);
  expect(written).toEqual([]);
  tick(9);
  bar.add(1, 3_000);
  bar.end();
  expect(written).toEqual(['0 % of 400 seeds, 0 seeds/s, 600 steps/s, 33 min 10 s left\n']);
});

test('long waits are told in hours', () => {
  const { written, bar, tick } = progress(false);
  tick(100);
  bar.add(1, 3_000);
  expect(written[0]).toContain(', 11 h 5 min left');
});
