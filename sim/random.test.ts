import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { chiSquareFits } from '../test/chi-square.ts';
import { seededStreams, tapedStreams } from './random.ts';
import type { Random, Streams } from './random.ts';
import { seedFromNumber } from './seed.ts';
import type { Seed } from './seed.ts';
import { STREAM_NAMES, tapeDecisions, tapeFrom, TapeRecorder } from './tape.ts';
import type { StreamName } from './tape.ts';

const word = fc.integer({ min: 0, max: 0xffff_ffff });
const anySeed = fc.record({ high: word, low: word });
const anyBound = fc.integer({ min: 1, max: 2 ** 32 });

describe('streams', () => {
  test('every pair of streams shows the joint event of 1/16 × 1/16 at every draw index', () => {
    const seeds = 4_000;
    const indexes = 64;
    const pairs = STREAM_NAMES.flatMap((left, at) =>
      STREAM_NAMES.slice(at + 1).map((right) => ({ left, right, seen: new Set<number>() })),
    );
    for (let seed = 0; seed < seeds; seed++) {
      const zeros = zerosOf(seededStreams(seedFromNumber(seed)), indexes);
      for (const { left, right, seen } of pairs) {
        const joint = zeros[left].filter((index) => zeros[right].includes(index));
        for (const index of joint) seen.add(index);
      }
    }
    expect(pairs).toHaveLength(15);
    expect(pairs.filter(({ seen }) => seen.size < indexes)).toEqual([]);
  });

  test('the sum over XOR of two streams differs from seed to seed', () => {
    const sums = new Set<number>();
    for (let seed = 0; seed < 2_000; seed++) {
      const { net, sched } = seededStreams(seedFromNumber(seed));
      sums.add(net.choose('xor', 2 ** 32) ^ sched.choose('xor', 2 ** 32));
    }
    expect(sums.size).toBeGreaterThan(1_990);
  });

  test.each([
    ['0', { high: 0, low: 0 }],
    ['1', { high: 0, low: 1 }],
    ['2^64 − 1', { high: 0xffff_ffff, low: 0xffff_ffff }],
  ])('seed %s is ordinary: every stream of it is uniform', (_, seed) => {
    const streams = seededStreams(seed);
    for (const name of STREAM_NAMES) expect(uniform(streams[name], 64, 20_000)).toBe(true);
  });

  test('a draw added to one stream leaves the others unchanged', () => {
    const before = seededStreams(seedFromNumber(9));
    const after = seededStreams(seedFromNumber(9));
    const others = STREAM_NAMES.filter((name) => name !== 'net');
    const expected = others.map((name) => draws(before[name], 50));
    draws(after.net, 7);
    expect(others.map((name) => draws(after[name], 50))).toEqual(expected);
  });

  test('a fork has a sequence of its own and shifts its parent by nothing', () => {
    const alone = seededStreams(seedFromNumber(3)).net;
    const forked = seededStreams(seedFromNumber(3)).net;
    const child = draws(forked.fork('link'), 20);
    expect(child).not.toEqual(draws(forked.fork('other'), 20));
    expect(child).toEqual(draws(forked.fork('link'), 20));
    expect(draws(forked, 20)).toEqual(draws(alone, 20));
  });

  test('the site never changes what is drawn', () => {
    const { net } = seededStreams(seedFromNumber(4));
    const { net: again } = seededStreams(seedFromNumber(4));
    expect(net.choose('one', 1_000)).toBe(again.choose('another', 1_000));
  });
});

describe('choices', () => {
  test('every choice costs one draw, whatever its bound and outcome', () => {
    fc.assert(
      fc.property(anySeed, fc.array(anyBound, { maxLength: 20 }), (seed, bounds) => {
        const varied = seededStreams(seed).values;
        const fixed = seededStreams(seed).values;
        for (const bound of bounds) varied.choose('varied', bound);
        for (const _ of bounds) fixed.choose('fixed', 2);
        expect(varied.choose('next', 2 ** 32)).toBe(fixed.choose('next', 2 ** 32));
      }),
    );
  });

  test('a choice is a whole number below its bound', () => {
    fc.assert(
      fc.property(anySeed, anyBound, (seed, bound) => {
        const value = seededStreams(seed).values.choose('any', bound);
        expect(Number.isInteger(value) && value >= 0 && value < bound).toBe(true);
      }),
    );
  });

  test('a choice is the high word of draw times bound, exactly', () => {
    fc.assert(
      fc.property(anySeed, fc.integer({ min: 1, max: 2 ** 21 }), (seed, bound) => {
        const draw = seededStreams(seed).values.choose('word', 2 ** 32);
        const exact = Number((BigInt(draw) * BigInt(bound)) >> 32n);
        expect(seededStreams(seed).values.choose('any', bound)).toBe(exact);
      }),
    );
  });

  test('bounds outside 1 to 2^32, and fractions, are refused', () => {
    const { net } = seededStreams(seedFromNumber(0));
    for (const bound of [0, -1, 1.5, 2 ** 32 + 1, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => net.choose('bad', bound)).toThrow('bound');
    }
    expect(() => net.pick('empty', [])).toThrow('bound');
    expect(() => net.weighted('weightless', [0, 0])).toThrow('bound');
  });

  test.each([2, 3, 10, 16, 100, 1_000])('choices below %i are uniform', (bound) => {
    expect(uniform(seededStreams(seedFromNumber(bound)).values, bound, 100_000)).toBe(true);
  });

  test('large bounds are uniform over their range', () => {
    const { values } = seededStreams(seedFromNumber(8));
    const counts = tally(64, 100_000, () =>
      Math.floor(values.choose('large', 3_000_000_019) / 46_875_001),
    );
    expect(
      chiSquareFits(
        counts,
        counts.map(() => 1),
      ),
    ).toBe(true);
  });

  test('chance comes true as often as its ratio says', () => {
    const { net } = seededStreams(seedFromNumber(11));
    const counts = tally(2, 100_000, () => (net.chance('ratio', 3, 100) ? 1 : 0));
    expect(chiSquareFits(counts, [97, 3])).toBe(true);
    expect(chiSquareFits(counts, [965, 35])).toBe(false);
    expect(net.chance('never', 0, 5)).toBe(false);
    expect(net.chance('surely', 5, 5)).toBe(true);
  });

  test('between reaches both ends and is uniform in between', () => {
    const { net } = seededStreams(seedFromNumber(12));
    const counts = tally(10, 50_000, () => net.between('range', -3, 6) + 3);
    expect(
      chiSquareFits(
        counts,
        counts.map(() => 1),
      ),
    ).toBe(true);
    expect(net.between('point', 7, 7)).toBe(7);
  });

  test('picking is uniform over the items', () => {
    const { net } = seededStreams(seedFromNumber(13));
    const counts = tally(5, 50_000, () =>
      'abcde'.indexOf(net.pick('letter', ['a', 'b', 'c', 'd', 'e'])),
    );
    expect(chiSquareFits(counts, [1, 1, 1, 1, 1])).toBe(true);
  });

  test('weights are kept, and a weight of zero is never chosen', () => {
    const { workload } = seededStreams(seedFromNumber(14));
    const weights = [34, 16, 14, 14, 6, 5, 4, 3, 2, 2];
    const counts = tally(10, 100_000, () => workload.weighted('action', weights));
    expect(chiSquareFits(counts, weights)).toBe(true);
    const zeros = tally(3, 1_000, () => workload.weighted('zeros', [0, 1, 0]));
    expect(zeros).toEqual([0, 1_000, 0]);
  });

  test('a shuffle keeps the items, and every order is equally likely', () => {
    const { net } = seededStreams(seedFromNumber(15));
    const orders = new Map<string, number>();
    const items = ['a', 'b', 'c', 'd'];
    for (let round = 0; round < 48_000; round++) {
      const order = net.shuffle('order', items).join('');
      orders.set(order, (orders.get(order) ?? 0) + 1);
    }
    expect(orders.size).toBe(24);
    const counts = [...orders.values()];
    expect(
      chiSquareFits(
        counts,
        counts.map(() => 1),
      ),
    ).toBe(true);
    expect(items.join('')).toBe('abcd');
  });
});

describe('tapes', () => {
  test('recording does not change the run, and the tape replays it without its draws', () => {
    fc.assert(
      fc.property(anySeed, (seed) => {
        const recorder = new TapeRecorder(seed);
        const recorded = mixedRun(seededStreams(seed, recorder));
        expect(recorded).toEqual(mixedRun(seededStreams(seed)));
        const otherSeed = { high: seed.low, low: seed.high };
        const { streams, player } = tapedStreams({ ...recorder.tape(), seed: otherSeed });
        expect(mixedRun(streams)).toEqual(recorded);
        expect(player.mismatches).toBe(0);
      }),
    );
  });

  test('a replay can be recorded again, to the same tape', () => {
    const recorder = new TapeRecorder(seedFromNumber(5));
    mixedRun(seededStreams(seedFromNumber(5), recorder));
    const again = new TapeRecorder(seedFromNumber(5));
    mixedRun(tapedStreams(recorder.tape(), again).streams);
    expect(again.tape()).toEqual(recorder.tape());
    expect(again.length).toBe(recorder.length);
  });

  test('decisions unpack and pack again, with 2^32 as a bound', () => {
    const seed: Seed = { high: 1, low: 2 };
    const recorder = new TapeRecorder(seed);
    seededStreams(seed, recorder).net.choose('word', 2 ** 32);
    seededStreams(seed, recorder).sched.choose('word', 2);
    const decisions = tapeDecisions(recorder.tape());
    expect(decisions).toMatchObject([
      { stream: 'net', site: 'word', bound: 2 ** 32 },
      { stream: 'sched', site: 'word', bound: 2 },
    ]);
    expect(tapeFrom(seed, decisions)).toEqual(recorder.tape());
  });

  test('a changed bound gives the value modulo the bound, and the end gives zeros', () => {
    const tape = tapeFrom(seedFromNumber(0), [
      { stream: 'net', site: 'loss', bound: 100, value: 37 },
      { stream: 'net', site: 'loss', bound: 100, value: 99 },
    ]);
    const { streams, player } = tapedStreams(tape);
    expect(streams.net.choose('loss', 10)).toBe(7);
    expect(player.mismatches).toBe(1);
    expect(streams.net.choose('loss', 100)).toBe(99);
    expect(player.mismatches).toBe(1);
    expect(streams.net.choose('loss', 100)).toBe(0);
    expect(streams.sched.choose('loss', 100)).toBe(0);
    expect(player.mismatches).toBe(3);
  });

  test('each stream plays at its own pace', () => {
    const recorder = new TapeRecorder(seedFromNumber(6));
    const { net, sched } = seededStreams(seedFromNumber(6), recorder);
    const expected = [net.choose('a', 1_000), sched.choose('b', 1_000), net.choose('a', 1_000)];
    const { streams } = tapedStreams(recorder.tape());
    const played = [
      streams.net.choose('a', 1_000),
      streams.net.choose('a', 1_000),
      streams.sched.choose('b', 1_000),
    ];
    expect(played).toEqual([expected[0], expected[2], expected[1]]);
  });
});

/** At which of its first draws each stream gave the event of 1/16. */
function zerosOf(streams: Streams, indexes: number): Record<StreamName, number[]> {
  const zeros = (name: StreamName): number[] =>
    Array.from({ length: indexes }, (_, index) => index).filter(
      () => streams[name].choose('joint', 16) === 0,
    );
  return {
    config: zeros('config'),
    workload: zeros('workload'),
    net: zeros('net'),
    sched: zeros('sched'),
    buggify: zeros('buggify'),
    values: zeros('values'),
  };
}

function draws(random: Random, count: number): number[] {
  return Array.from({ length: count }, () => random.choose('draw', 2 ** 32));
}

function tally(cells: number, count: number, draw: () => number): number[] {
  const counts = Array.from({ length: cells }, () => 0);
  for (let round = 0; round < count; round++) counts[draw()]!++;
  return counts;
}

function uniform(random: Random, bound: number, count: number): boolean {
  const counts = tally(bound, count, () => random.choose('uniform', bound));
  return chiSquareFits(
    counts,
    counts.map(() => 1),
  );
}

/** A little of everything, on streams that take turns. */
function mixedRun({ config, net, sched, values }: Streams): unknown[] {
  return Array.from({ length: 20 }, () => [
    config.between('size', 1, 31),
    net.chance('loss', 1, 10),
    net.fork('link').choose('delay', 5_000),
    sched.shuffle('order', [1, 2, 3, 4]),
    values.weighted('kind', [1, 2, 3]),
    values.choose('word', 2 ** 32),
  ]);
}
