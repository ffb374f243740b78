/** Whom a cluster keeps out and whom it slows down: who shares a bucket, what a refusal costs, what a reload keeps. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addressOf } from '../test/plane-bench.ts';
import { heldBy } from '../test/held.ts';
import { ipv4, ipv6 } from './address.ts';
import { parseCidr, type Cidr } from './cidr.ts';
import { NO_SOURCE_RATES, type SourceRates } from './config.ts';
import { SourcePolicer, type PolicerSettings } from './source-policer.ts';
import { instant, type Instant } from './time.ts';

const A = addressOf('192.0.2.1:1000');
const B = addressOf('192.0.2.2:1000');
const START = instant(5_000_000);
const MIB = 1_048_576;

describe('rates of a source', () => {
  test('all off: nobody is refused, and there is no memory', () => {
    const policer = policerOf({});
    expect(times(100, () => policer.refuses(A, START))).toEqual(times(100, () => undefined));
    expect([policer.denies(A), policer.byteLength]).toEqual([false, 0]);
  });

  test('a source opens its burst of flows at once, then flows at its rate; others are not concerned', () => {
    const policer = policerOf({ newFlowsPerSecond: 2, newFlowsBurst: 3 });
    expect(times(4, () => policer.refuses(A, START))).toEqual([...granted(3), 'NewFlowRate']);
    expect(policer.refuses(B, START)).toBeUndefined();
    expect(policer.refuses(A, later(499_999))).toBe('NewFlowRate');
    expect(policer.refuses(A, later(500_000))).toBeUndefined();
    expect(policer.refuses(A, later(500_000))).toBe('NewFlowRate');
  });

  test('the datagram rate holds by itself', () => {
    const policer = policerOf({ datagramsPerSecond: 1, datagramsBurst: 2 });
    expect(times(3, () => policer.refuses(A, START))).toEqual([...granted(2), 'DatagramRate']);
  });

  test('with both, whichever refuses spends nothing of the other', () => {
    const few = { newFlowsPerSecond: 1, newFlowsBurst: 1 };
    const policer = policerOf({ ...few, datagramsPerSecond: 1, datagramsBurst: 2 });
    expect(times(9, () => policer.refuses(A, START)).slice(1)).toEqual(
      times(8, () => 'NewFlowRate'),
    );
    // Eight datagrams refused for the other rate, and one token of two is still there.
    const slow = { newFlowsPerSecond: 2, newFlowsBurst: 2 };
    policer.configure(settingsOf({ ...slow, datagramsPerSecond: 1, datagramsBurst: 2 }));
    expect(policer.refuses(A, START)).toBeUndefined();
    expect(times(9, () => policer.refuses(A, START))).toEqual(times(9, () => 'DatagramRate'));
    // And nine refused for this rate left one flow of two.
    policer.configure(settingsOf(slow));
    expect(times(2, () => policer.refuses(A, START))).toEqual([undefined, 'NewFlowRate']);
  });

  test('a burst of 0 is one token, not a cluster that serves nobody', () => {
    const policer = policerOf({ newFlowsPerSecond: 1, newFlowsBurst: 0 });
    expect(times(2, () => policer.refuses(A, START))).toEqual([undefined, 'NewFlowRate']);
  });
});

describe('who shares a bucket', () => {
  test('an IPv4 address, whatever its port', () => {
    const policer = policerOf({ newFlowsPerSecond: 1, newFlowsBurst: 1 });
    expect(policer.refuses(A, START)).toBeUndefined();
    expect(policer.refuses({ ...A, port: 2_000 }, START)).toBe('NewFlowRate');
    expect(policer.refuses(B, START)).toBeUndefined();
  });

  test('an IPv4 address and an IPv6 prefix of the same bits are apart', () => {
    const policer = policerOf({ newFlowsPerSecond: 1, newFlowsBurst: 1 }, 32);
    expect(policer.refuses(ipv4(0xc0000201, 1), START)).toBeUndefined();
    expect(policer.refuses(ipv6([0xc0000201, 0, 0, 0], 1), START)).toBeUndefined();
  });

  test('an IPv6 prefix of any length: what differs in it is apart, what differs behind it is not', () => {
    const words = fc.tuple(fc.integer(), fc.integer(), fc.integer(), fc.integer());
    fc.assert(
      fc.property(words, fc.integer({ min: 0, max: 128 }), fc.nat(127), (base, prefix, bit) => {
        const policer = policerOf({ newFlowsPerSecond: 1, newFlowsBurst: 1 }, prefix);
        const flipped: [number, number, number, number] = [...base];
        flipped[bit >> 5]! ^= 1 << (31 - (bit & 31));
        expect(policer.refuses(ipv6(base, 1), START)).toBeUndefined();
        expect(policer.refuses(ipv6(flipped, 1), START)).toBe(
          bit < prefix ? undefined : 'NewFlowRate',
        );
      }),
    );
  });
});

describe('lists of blocks', () => {
  test('deny keeps out, allow lets in nobody else', () => {
    const denying = policerOf({ deny: [cidr('192.0.2.1')] });
    expect([denying.denies(A), denying.denies(B)]).toEqual([true, false]);
    const allowing = policerOf({ allow: [cidr('192.0.2.1')] });
    expect([allowing.denies(A), allowing.denies(B)]).toEqual([false, true]);
  });

  test('the same block in both lists is denied, whichever it is', () => {
    const blocks = fc.tuple(fc.integer(), fc.integer({ min: 0, max: 32 }));
    fc.assert(
      fc.property(blocks, fc.integer(), ([word, bits], behind) => {
        const base = bits === 0 ? 0 : word & (-1 << (32 - bits));
        const block = { base: ipv4(base, 0), bits };
        const inside = ipv4(base | (bits === 32 ? 0 : behind & (-1 >>> bits)), 9);
        expect(policerOf({ allow: [block], deny: [block] }).denies(inside)).toBe(true);
        expect(policerOf({ allow: [block] }).denies(inside)).toBe(false);
      }),
    );
  });
});

describe('new settings', () => {
  const rates = {
    newFlowsPerSecond: 1,
    newFlowsBurst: 1,
    datagramsPerSecond: 9,
    datagramsBurst: 9,
  };
  const spent = (): SourcePolicer => {
    const policer = policerOf(rates);
    policer.refuses(A, START);
    return policer;
  };

  test.each<[string, Partial<SourceRates>, number?]>([
    ['the same again', rates],
    ['lists', { ...rates, deny: [cidr('10.0.0.0/8')] }],
    ['the other rate', { ...rates, datagramsPerSecond: 8 }],
    ['the prefix', rates, 48],
  ])('a rate keeps what was spent when something else changes: %s', (_, changed, prefix) => {
    const policer = spent();
    policer.configure(settingsOf(changed, prefix));
    expect(policer.refuses(A, START)).toBe('NewFlowRate');
  });

  test.each<[string, Partial<SourceRates>]>([
    ['rate', { ...rates, newFlowsPerSecond: 2 }],
    ['burst', { ...rates, newFlowsBurst: 2 }],
    ['columns', { ...rates, columns: 64 }],
  ])('its own change of %s begins anew', (_, changed) => {
    const policer = spent();
    policer.configure(settingsOf(changed));
    expect(policer.refuses(A, START)).toBeUndefined();
  });

  test('memory is 1 MiB for each rate that is on, and goes with it', () => {
    const policer = policerOf(rates);
    expect(policer.byteLength).toBe(2 * MIB);
    policer.configure(settingsOf({ datagramsPerSecond: 9 }));
    expect(policer.byteLength).toBe(MIB);
    policer.configure(settingsOf({}));
    expect([policer.byteLength, policer.refuses(A, START)]).toEqual([0, undefined]);
  });

  test('lists follow, and what is listed no longer is forgotten', () => {
    const policer = policerOf({ deny: [cidr('192.0.2.1')] });
    policer.configure(settingsOf({ deny: [cidr('192.0.2.2')] }));
    expect([policer.denies(A), policer.denies(B)]).toEqual([false, true]);
    policer.configure(settingsOf({}));
    expect([policer.denies(A), policer.denies(B)]).toEqual([false, false]);
  });
});

test('whatever comes in whatever order, no source opens more than burst + rate × time, nor sends more', () => {
  const arrivals = fc.array(
    fc.record({ source: fc.nat(5), pause: fc.oneof(fc.constant(0), fc.nat(900_000)) }),
    { maxLength: 100 },
  );
  const limit = fc.integer({ min: 1, max: 5 });
  const rates = fc.record({
    newFlowsPerSecond: limit,
    newFlowsBurst: limit,
    datagramsPerSecond: limit,
    datagramsBurst: limit,
    columns: fc.constantFrom(1, 2, 64),
  });
  fc.assert(
    fc.property(arrivals, rates, (steps, config) => {
      const policer = policerOf(config);
      const opened = new Map<number, number[]>();
      let now = 0;
      for (const { source, pause } of steps) {
        now += pause;
        if (policer.refuses(ipv4(source + 1, 7), instant(now)) !== undefined) continue;
        opened.set(source, [...(opened.get(source) ?? []), now]);
      }
      for (const moments of opened.values()) {
        expectWithin(moments, config.newFlowsBurst, config.newFlowsPerSecond);
        expectWithin(moments, config.datagramsBurst, config.datagramsPerSecond);
      }
    }),
  );
});

test('200,000 sources leave it as large as it was', () => {
  const policer = policerOf({ newFlowsPerSecond: 10, datagramsPerSecond: 10, deny: [cidr('::1')] });
  const before = heldBy(policer);
  for (let n = 0; n < 200_000; n += 1) {
    const source = n % 2 === 0 ? ipv4(n, 1) : ipv6([0x20010db8, n, 0, 0], 1);
    policer.denies(source);
    policer.refuses(source, later(n));
  }
  expect(heldBy(policer)).toEqual(before);
  expect(before.bytes).toBeGreaterThan(2 * MIB);
});

/** In every span between two grants no more than the burst and the rate of that span. Times are microseconds. */
function expectWithin(moments: readonly number[], burst: number, rate: number): void {
  for (const [first, from] of moments.entries()) {
    for (const [count, to] of moments.slice(first).entries()) {
      expect((count + 1) * 1_000_000).toBeLessThanOrEqual(burst * 1_000_000 + rate * (to - from));
    }
  }
}

function policerOf(rates: Partial<SourceRates>, prefix?: number): SourcePolicer {
  return new SourcePolicer(settingsOf(rates, prefix), { first: 1, second: 2 });
}

function settingsOf(rates: Partial<SourceRates>, subnetPrefixIpv6 = 64): PolicerSettings {
  return { rates: { ...NO_SOURCE_RATES, ...rates }, subnetPrefixIpv6 };
}

function cidr(text: string): Cidr {
  const parsed = parseCidr(text);
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.cidr;
}

function granted(count: number): undefined[] {
  return times(count, () => undefined);
}

function times<T>(count: number, make: () => T): T[] {
  return Array.from({ length: count }, make);
}

function later(microseconds: number): Instant {
  return instant(START + microseconds);
}
