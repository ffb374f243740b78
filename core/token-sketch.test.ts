/** Token sketch: exact for a key alone, never generous, and wrong about a good key no more often than it promises. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createRandom } from './random.ts';
import { after, instant, microseconds, seconds } from './time.ts';
import {
  COLUMNS_MAX,
  ROWS,
  TOKENS_MAX,
  TokenSketch,
  type TokenSketchOptions,
} from './token-sketch.ts';

const KEY = Int32Array.of(0x0a000001);
const START = instant(1_000);

describe('token buckets of a sketch', () => {
  test('a key has its burst at once, then its rate, to the microsecond', () => {
    const sketch = create({ rate: 4, burst: 3 });
    const take = (at: number): boolean => sketch.take(KEY, 1, 1, instant(at));
    expect([take(0), take(0), take(0), take(0)]).toEqual([true, true, true, false]);
    expect([take(249_999), take(250_000), take(250_000)]).toEqual([false, true, false]);
    expect([take(10_000_000), take(10_000_000), take(10_000_000), take(10_000_000)]).toEqual([
      true,
      true,
      true,
      false,
    ]);
  });

  test('a rate that does not divide a second is exact too: three a second for a million seconds', () => {
    const sketch = create({ rate: 3, burst: 1 });
    expect(sketch.take(KEY, 1, 1, instant(0))).toBe(true);
    expect(sketch.take(KEY, 1, 1, instant(333_333))).toBe(false);
    expect(sketch.take(KEY, 1, 1, instant(333_334))).toBe(true);
    const late = seconds(1_000_000);
    expect(sketch.take(KEY, 1, 1, instant(late))).toBe(true);
    expect(sketch.take(KEY, 1, 1, instant(late + 333_333))).toBe(false);
    expect(sketch.take(KEY, 1, 1, instant(late + 333_334))).toBe(true);
  });

  test('several tokens are taken all or none, and what is refused spends nothing', () => {
    const sketch = create({ rate: 1, burst: 10 });
    expect(sketch.take(KEY, 1, 11, START)).toBe(false);
    expect(sketch.take(KEY, 1, 7, START)).toBe(true);
    expect(sketch.take(KEY, 1, 4, START)).toBe(false);
    expect(sketch.take(KEY, 1, 3, START)).toBe(true);
    expect(sketch.take(KEY, 1, 0, START)).toBe(true);
    expect(sketch.take(KEY, 1, 1, START)).toBe(false);
  });

  test('the largest rate and burst stay exact', () => {
    const sketch = create({ rate: 1, burst: TOKENS_MAX });
    expect(sketch.take(KEY, 1, TOKENS_MAX, START)).toBe(true);
    expect(sketch.take(KEY, 1, 1, after(START, microseconds(999_999)))).toBe(false);
    expect(sketch.take(KEY, 1, 1, after(START, seconds(1)))).toBe(true);
    expect(sketch.take(KEY, 1, 1, after(START, seconds(1)))).toBe(false);
    const fast = create({ rate: TOKENS_MAX, burst: TOKENS_MAX });
    expect(fast.take(KEY, 1, TOKENS_MAX, START)).toBe(true);
    expect(fast.take(KEY, 1, 4_294, after(START, microseconds(1)))).toBe(true);
    expect(fast.take(KEY, 1, 1, after(START, microseconds(1)))).toBe(false);
  });

  test('a look spends nothing and sees what a take would get', () => {
    const sketch = create({ rate: 1, burst: 2 });
    const has = (tokens: number): boolean => sketch.has(KEY, 1, tokens, START);
    expect([has(2), has(2), has(3)]).toEqual([true, true, false]);
    expect(sketch.take(KEY, 1, 1, START)).toBe(true);
    expect([has(1), has(2)]).toEqual([true, false]);
  });

  test('it knows its own options, each of them', () => {
    const options = { rate: 1, burst: 2, columns: 4, seed: { first: 3, second: 4 } };
    const sketch = new TokenSketch(options);
    const others = [
      { rate: 2 },
      { burst: 3 },
      { columns: 8 },
      { seed: { first: 9, second: 4 } },
      { seed: { first: 3, second: 9 } },
    ];
    expect(sketch.isOf({ ...options, seed: { first: 3, second: 4 } })).toBe(true);
    expect(others.map((other) => sketch.isOf({ ...options, ...other }))).toEqual(
      others.map(() => false),
    );
  });

  test('memory is laid out once and stays, whatever the number of keys', () => {
    const sketch = create({ columns: 16 });
    const { byteLength } = sketch;
    for (let n = 0; n < 10_000; n += 1) sketch.take(Int32Array.of(n), 1, 1, START);
    expect(sketch.byteLength).toBe(byteLength);
    expect(create({ columns: COLUMNS_MAX }).byteLength).toBe(4 * 1_024 * 1_024);
  });

  test('time does not go back', () => {
    const sketch = create();
    sketch.take(KEY, 1, 1, after(START, microseconds(1)));
    expect(() => sketch.take(KEY, 1, 1, START)).toThrow('time does not go back');
  });

  test('what cannot be exact or addressed is a mistake of ours', () => {
    const shapes = [{ rate: 0 }, { rate: 0.5 }, { burst: 0 }, { burst: TOKENS_MAX + 1 }];
    for (const shape of shapes) expect(() => create(shape)).toThrow('whole and exact');
    for (const columns of [0, 3, 2 * COLUMNS_MAX]) {
      expect(() => create({ columns })).toThrow('power of two');
    }
  });

  test('keys that share all cells under one seed do not under another: nobody can aim', () => {
    const sharing = (seed: number): number[] => {
      const found: number[] = [];
      for (let n = 1; n < 2_000; n += 1) {
        const sketch = create({ columns: 4, burst: 1, seed: { first: seed, second: 1 } });
        sketch.take(KEY, 1, 1, START);
        if (!sketch.take(Int32Array.of(n), 1, 1, START)) found.push(n);
      }
      return found;
    };
    const [one, other] = [sharing(1), sharing(2)];
    // 1 in 4^ROWS keys, by chance.
    expect(one.length).toBeGreaterThan(1);
    expect(one.length).toBeLessThan(25);
    expect(one.filter((n) => other.includes(n))).toEqual([]);
  });
});

interface Arrival {
  readonly key: number;
  readonly tokens: number;
  readonly pause: number;
}

const arrivals = fc.array(
  fc.record({
    key: fc.nat(9),
    tokens: fc.nat(3),
    pause: fc.oneof(fc.constant(0), fc.nat(400_000), fc.nat(20_000_000)),
  }),
  { maxLength: 80 },
);
const shape = fc.record({
  rate: fc.integer({ min: 1, max: 7 }),
  burst: fc.integer({ min: 1, max: 6 }),
});

test('without collisions a sketch is a bucket for each key', () => {
  fc.assert(
    fc.property(arrivals, shape, (steps, options) => {
      const sketch = create({ ...options, columns: 4_096 });
      expect(steps.map(takes(sketch))).toEqual(exact(steps, options));
    }),
  );
});

test('however keys collide, nobody gets more than burst + rate × time', () => {
  fc.assert(
    fc.property(arrivals, shape, fc.constantFrom(1, 2, 4), (steps, options, columns) => {
      const sketch = create({ ...options, columns });
      let now = 0;
      const taken = new Map<number, { at: number; tokens: number }[]>();
      for (const step of steps) {
        now += step.pause;
        if (!sketch.take(Int32Array.of(step.key), 1, step.tokens, instant(now))) continue;
        const history = taken.get(step.key) ?? [];
        taken.set(step.key, [...history, { at: now, tokens: step.tokens }]);
      }
      for (const history of taken.values()) expectWithinRate(history, options);
    }),
  );
});

test.each([
  { load: 0.1, burst: 1 + 1, seed: 1 },
  { load: 0.5, burst: 1 + 1, seed: 2 },
  { load: 0.5, burst: 1 + 2, seed: 3 },
  { load: 0.9, burst: 1 + 1, seed: 4 },
  { load: 0.9, burst: 1 + 4, seed: 5 },
])(
  'a flood of new keys at $load of what the columns bear: a new key is refused as rarely as promised (burst $burst)',
  ({ load, burst, seed }) => {
    const columns = 64;
    const rate = 10;
    const sketch = create({ rate, burst, columns, seed: { first: seed, second: 99 } });
    const pause = 1_000_000 / (load * columns * rate);
    const count = 40_000;
    let refused = 0;
    for (let n = 0; n < count; n += 1) {
      const now = instant(Math.round(n * pause));
      if (!sketch.take(Int32Array.of(n, seed), 2, 1, now)) refused += 1;
    }
    expect(refused / count).toBeLessThanOrEqual(promised(load, burst - 1));
  },
);

test('beyond what the columns bear good keys suffer, so the tests of the promise can fail', () => {
  const sketch = create({ rate: 10, burst: 2, columns: 64 });
  let refused = 0;
  for (let n = 0; n < 40_000; n += 1) {
    if (!sketch.take(Int32Array.of(n), 1, 1, instant(n * 500))) refused += 1;
  }
  expect(refused / 40_000).toBeGreaterThan(0.3);
});

test('50 good sources below their rate lose nothing while 200,000 spoofed ones come at 10,000 a second', () => {
  const rate = 10;
  const sketch = create({ rate, burst: 20, columns: 16_384 });
  const random = createRandom({ high: 7, low: 8 });
  let refused = 0;
  for (let n = 0; n < 200_000; n += 1) {
    const now = instant(n * 100);
    sketch.take(Int32Array.of(random.next(), 1), 2, 1, now);
    // Every good source asks five times a second: one of them every 4 ms.
    if (n % 40 === 0 && !sketch.take(Int32Array.of((n / 40) % 50, 2), 2, 1, now)) refused += 1;
  }
  expect(refused).toBe(0);
});

/** The probability that the file promises, for a key whose bucket would have `left` tokens left. */
function promised(load: number, left: number): number {
  let [low, high] = [1e-9, 50];
  for (let step = 0; step < 100; step += 1) {
    const middle = (low + high) / 2;
    if (load * (Math.exp(middle) - 1) < middle) low = middle;
    else high = middle;
  }
  return Math.exp(-low * left * ROWS);
}

function create(options: Partial<TokenSketchOptions> = {}): TokenSketch {
  return new TokenSketch({
    rate: 1,
    burst: 5,
    columns: 256,
    seed: { first: 3, second: 4 },
    ...options,
  });
}

function takes(sketch: TokenSketch): (step: Arrival) => boolean {
  let now = 0;
  return ({ key, tokens, pause }) => {
    now += pause;
    return sketch.take(Int32Array.of(key), 1, tokens, instant(now));
  };
}

/** One bucket for each key, in exact integers. */
function exact(
  steps: readonly Arrival[],
  { rate, burst }: { readonly rate: number; readonly burst: number },
): boolean[] {
  const buckets = new Map<number, { tokens: bigint; at: bigint }>();
  const full = BigInt(burst) * 1_000_000n;
  let now = 0n;
  return steps.map(({ key, tokens, pause }) => {
    now += BigInt(pause);
    const bucket = buckets.get(key) ?? { tokens: full, at: 0n };
    const refilled = bucket.tokens + (now - bucket.at) * BigInt(rate);
    const there = refilled > full ? full : refilled;
    const wanted = BigInt(tokens) * 1_000_000n;
    const allowed = wanted <= there;
    buckets.set(key, { tokens: allowed ? there - wanted : there, at: now });
    return allowed;
  });
}

/** In every span between two takes, no more than the burst and the rate of that span. */
function expectWithinRate(
  history: readonly { readonly at: number; readonly tokens: number }[],
  { rate, burst }: { readonly rate: number; readonly burst: number },
): void {
  for (const [first, { at }] of history.entries()) {
    let sum = 0;
    for (const later of history.slice(first)) {
      sum += later.tokens;
      expect(sum * 1_000_000).toBeLessThanOrEqual(burst * 1_000_000 + rate * (later.at - at));
    }
  }
}
