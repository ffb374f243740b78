import { describe, expect, test } from 'vitest';
import { instant, microseconds, milliseconds } from '../../core/time.ts';
import { chiSquareFits } from '../../test/chi-square.ts';
import { counted, LinkRig } from '../../test/link-rig.ts';
import type { BurstLoss, Episode, LinkFaults } from './faults.ts';
import { FAULTLESS, independentLoss } from './faults.ts';

const SURELY = { numerator: 1, denominator: 1 };
const NEVER = { numerator: 0, denominator: 1 };

describe('time', () => {
  test('a packet is under way for exactly the latency', () => {
    const rig = new LinkRig({ latency: { kind: 'constant', time: milliseconds(5) } });
    rig.offer();
    rig.runUntil(1_000);
    rig.offer();
    rig.finish();
    expect(rig.arrivals).toEqual([
      { at: 5_000, serial: 1 },
      { at: 6_000, serial: 2 },
    ]);
  });

  test('packets arrive in their order, however long each of them would have taken', () => {
    const rig = new LinkRig({
      latency: { kind: 'uniform', low: microseconds(0), high: milliseconds(10) },
    });
    for (let sent = 0; sent < 1_000; sent++) {
      rig.offer();
      rig.runUntil(rig.clock.now() + 50);
    }
    rig.finish();
    expect(rig.serials).toEqual(counted(1_000));
    expect(new Set(rig.arrivals.map(({ at }) => at)).size).toBeGreaterThan(10);
  });

  test('packets that are due at one instant arrive in one event', () => {
    const rig = new LinkRig({ latency: { kind: 'constant', time: milliseconds(1) } });
    for (let sent = 0; sent < 64; sent++) rig.offer();
    expect(rig.events.size).toBe(1);
    rig.finish();
    expect(rig.arrivals).toEqual(counted(64).map((serial) => ({ at: 1_000, serial })));
  });

  test('a link at once needs no event, and still overtakes nobody', () => {
    const rig = new LinkRig({}, { atOnce: true });
    rig.offer();
    expect(rig.serials).toEqual([1]);
    rig.link.setFaults({ ...FAULTLESS, latency: { kind: 'constant', time: milliseconds(1) } });
    rig.offer();
    rig.link.setFaults(FAULTLESS);
    rig.offer();
    expect(rig.serials).toEqual([1]);
    rig.finish();
    expect(rig.serials).toEqual([1, 2, 3]);
  });

  test('answers without delay take events, not one endless loop', () => {
    const rig = new LinkRig({});
    rig.onArrival = () => rig.offer();
    rig.offer();
    for (let event = 1; event <= 10; event++) {
      rig.events.pop()!.value();
      expect(rig.arrivals).toHaveLength(event);
    }
  });
});

describe('loss', () => {
  test('independent losses are as many as their ratio says', () => {
    const rig = new LinkRig({ loss: independentLoss({ numerator: 3, denominator: 100 }) });
    const lost = rig.lossesOf(50_000);
    const count = lost.filter(Boolean).length;
    expect(chiSquareFits([50_000 - count, count], [97, 3])).toBe(true);
    expect(chiSquareFits([50_000 - count, count], [965, 35])).toBe(false);
    const pairs = [0, 0, 0, 0];
    for (let at = 0; at < lost.length; at += 2) {
      pairs[Number(lost[at]) * 2 + Number(lost[at + 1])]!++;
    }
    expect(chiSquareFits(pairs, [97 * 97, 97 * 3, 3 * 97, 3 * 3])).toBe(true);
  });

  test('bursts have the lengths and the share of the time that the two ratios say', () => {
    const loss: BurstLoss = {
      toBad: { numerator: 1, denominator: 20 },
      toGood: { numerator: 1, denominator: 4 },
      lossGood: NEVER,
      lossBad: SURELY,
    };
    const lengths = Array.from({ length: 8 }, () => 0);
    let burst = 0;
    let total = 0;
    const lost = new LinkRig({ loss }).lossesOf(120_000);
    for (const gone of lost) {
      if (gone) burst += 1;
      else if (burst > 0) {
        lengths[Math.min(burst, 8) - 1]!++;
        total += 1;
        burst = 0;
      }
    }
    const shares = lengths.map((_, index) => (index < 7 ? 0.25 * 0.75 ** index : 0.75 ** index));
    expect(chiSquareFits(lengths, shares)).toBe(true);
    // Good times are geometric with mean 20, bad ones with mean 4: about 5,000 bursts, give or take four deviations.
    expect(Math.abs(total - 5_000)).toBeLessThan(4 * Math.sqrt(5_000));
    expect(Math.abs(lost.filter(Boolean).length / 120_000 - 1 / 6)).toBeLessThan(0.01);
  });

  test('a bad time loses by its own ratio, a good time by the other', () => {
    const bad = new LinkRig({
      loss: {
        toBad: SURELY,
        toGood: NEVER,
        lossGood: NEVER,
        lossBad: { numerator: 1, denominator: 2 },
      },
    }).lossesOf(10_000);
    const count = bad.filter(Boolean).length;
    expect(chiSquareFits([10_000 - count, count], [1, 1])).toBe(true);
  });
});

describe('copies and turns', () => {
  test('duplication makes as many copies as it says, later than the originals and marked', () => {
    const rig = new LinkRig({
      latency: { kind: 'constant', time: milliseconds(1) },
      duplication: {
        ratio: { numerator: 1, denominator: 10 },
        by: { low: microseconds(100), high: microseconds(300) },
      },
    });
    for (let sent = 0; sent < 20_000; sent++) {
      rig.offer();
      rig.runUntil(rig.clock.now() + 1_000);
    }
    rig.finish();
    const { duplicated, delivered } = rig.ledger;
    expect(chiSquareFits([20_000 - duplicated, duplicated], [9, 1])).toBe(true);
    expect(delivered).toBe(20_000 + duplicated);
    const copies = rig.packets.filter(({ packet }) => packet.copy);
    expect(copies).toHaveLength(duplicated);
    const lateness = copies.map(({ at, packet }) => at - (packet.serial - 1) * 1_000 - 1_000);
    expect(Math.min(...lateness)).toBe(100);
    expect(Math.max(...lateness)).toBe(300);
  });

  test('reordering puts as many out of turn as it says, and others overtake just these', () => {
    const rig = new LinkRig({
      latency: { kind: 'constant', time: milliseconds(1) },
      reordering: {
        ratio: { numerator: 1, denominator: 10 },
        by: { low: milliseconds(2), high: milliseconds(4) },
      },
    });
    for (let sent = 0; sent < 20_000; sent++) {
      rig.offer();
      rig.runUntil(rig.clock.now() + 1_000);
    }
    rig.finish();
    const { reordered } = rig.ledger;
    expect(chiSquareFits([20_000 - reordered, reordered], [9, 1])).toBe(true);
    const late = new Set(
      rig.fates
        .flatMap((fate) => (fate.kind === 'reordered' ? [fate] : []))
        .map(({ packet }) => packet.serial),
    );
    for (const { at, serial } of rig.arrivals) {
      const took = at - (serial - 1) * 1_000;
      expect(late.has(serial) ? took >= 3_000 && took <= 5_000 : took === 1_000).toBe(true);
    }
    expect(rig.serials).not.toEqual(counted(20_000));
    expect(rig.serials.toSorted((one, other) => one - other)).toEqual(counted(20_000));
  });
});

describe('limits of the line', () => {
  test('the largest packet passes and one byte more is lost, IP and UDP headers included', () => {
    const mtu = { bytes: 1_500, icmp: true };
    const rig = new LinkRig({ mtu });
    rig.offer(new Uint8Array(1_472));
    rig.offer(new Uint8Array(1_473));
    rig.offerIpv6(new Uint8Array(1_452));
    rig.offerIpv6(new Uint8Array(1_453));
    rig.finish();
    expect(rig.serials).toEqual([1, 3]);
    expect(rig.ledger.lost).toEqual(new Map([['too-big', 2]]));
    expect(rig.tooBig).toEqual([
      { serial: 2, mtu: 1_500 },
      { serial: 4, mtu: 1_500 },
    ]);
    const silent = new LinkRig({ mtu: { ...mtu, icmp: false } });
    silent.offer(new Uint8Array(1_473));
    expect(silent.ledger.lost).toEqual(new Map([['too-big', 1]]));
    expect(silent.tooBig).toEqual([]);
  });

  test('a long queue makes the delay grow packet by packet, and loses what finds no room', () => {
    const rig = new LinkRig({ rate: { bytesPerSecond: 1_000_000, queueBytes: 10_000 } });
    for (let sent = 0; sent < 12; sent++) rig.offer(new Uint8Array(972));
    expect(rig.ledger.lost).toEqual(new Map([['queue-full', 2]]));
    rig.runUntil(3_500);
    rig.offer(new Uint8Array(972));
    rig.finish();
    const delays = rig.arrivals.map(({ at }) => at);
    expect(delays).toEqual([...counted(10).map((n) => n * 1_000), 11_000]);
  });

  test('a fast line does not lose bytes to whole microseconds', () => {
    const rig = new LinkRig({ rate: { bytesPerSecond: 300_000_000, queueBytes: 1_000_000 } });
    for (let sent = 0; sent < 3_000; sent++) rig.offer(new Uint8Array(72));
    rig.finish();
    expect(rig.arrivals.at(-1)).toEqual({ at: 1_000, serial: 3_000 });
  });

  test('a copy takes its place on the line too', () => {
    const rig = new LinkRig({
      rate: { bytesPerSecond: 1_000_000, queueBytes: 2_500 },
      duplication: { ratio: SURELY, by: { low: microseconds(0), high: microseconds(0) } },
    });
    rig.offer(new Uint8Array(972));
    rig.offer(new Uint8Array(972));
    rig.finish();
    expect(rig.arrivals.map(({ at }) => at)).toEqual([1_000, 2_000]);
    expect(rig.ledger.lost).toEqual(new Map([['queue-full', 2]]));
  });
});

describe('partitions and holds', () => {
  test('a partition lets nothing in, and what is under way arrives', () => {
    const rig = new LinkRig({ latency: { kind: 'constant', time: milliseconds(5) } });
    rig.offer();
    rig.link.addEpisode(episode(0, 2_000, { partitioned: true }));
    rig.offer();
    rig.runUntil(1_999);
    rig.offer();
    rig.runUntil(2_000);
    rig.offer();
    rig.finish();
    expect(rig.serials).toEqual([1, 4]);
    expect(rig.ledger.lost).toEqual(new Map([['partition', 2]]));
  });

  test('what is held sets out in its order when the hold ends, behind what was under way', () => {
    const rig = new LinkRig({
      latency: { kind: 'uniform', low: milliseconds(1), high: milliseconds(9) },
    });
    for (let sent = 0; sent < 20; sent++) rig.offer();
    rig.link.addEpisode(episode(0, 3_000, { held: true }));
    for (let sent = 0; sent < 20; sent++) rig.offer();
    expect(rig.link.inFlight).toBe(40);
    rig.runUntil(3_000);
    expect(rig.serials.every((serial) => serial <= 20)).toBe(true);
    for (let sent = 0; sent < 20; sent++) rig.offer();
    rig.finish();
    expect(rig.serials).toEqual(counted(60));
    expect(rig.arrivals.find(({ serial }) => serial === 21)!.at).toBeGreaterThanOrEqual(4_000);
  });
});

describe('episodes', () => {
  test('another fault that comes or goes under a hold releases nothing', () => {
    const rig = new LinkRig({});
    rig.link.addEpisode(episode(0, 3_000, { held: true }));
    rig.link.addEpisode(episode(1_000, 2_000, { partitioned: true }));
    rig.offer();
    rig.runUntil(2_999);
    expect(rig.serials).toEqual([]);
    rig.finish();
    expect(rig.serials).toEqual([1]);
  });

  const slow = { kind: 'constant', time: milliseconds(50) } as const;
  const slower = { kind: 'constant', time: milliseconds(70) } as const;

  test('each begins and ends at its instant, and of two the later one counts', () => {
    const rig = new LinkRig({ mtu: { bytes: 1_280, icmp: false } });
    rig.link.addEpisode(episode(1_000, 5_000, { latency: slow }));
    rig.link.addEpisode(episode(2_000, 3_000, { latency: slower, mtu: undefined }));
    const seen = [999, 1_000, 2_000, 2_999, 3_000, 4_999, 5_000].map((at) => {
      rig.runUntil(at);
      const { latency, mtu } = rig.link.faults;
      return [at, latency.kind === 'constant' && latency.time, mtu?.bytes];
    });
    expect(seen).toEqual([
      [999, 0, 1_280],
      [1_000, 50_000, 1_280],
      [2_000, 70_000, undefined],
      [2_999, 70_000, undefined],
      [3_000, 50_000, 1_280],
      [4_999, 50_000, 1_280],
      [5_000, 0, 1_280],
    ]);
  });

  test('healing ends those that run and those that have not begun, and leaves no event', () => {
    const rig = new LinkRig({});
    rig.link.addEpisode(episode(0, 5_000, { held: true }));
    rig.link.addEpisode(episode(1_000, 5_000, { partitioned: true }));
    rig.offer();
    expect(rig.events.size).toBe(2);
    rig.link.heal();
    expect(rig.link.faults).toEqual(FAULTLESS);
    rig.finish();
    expect(rig.clock.now()).toBe(0);
    expect(rig.serials).toEqual([1]);
  });

  test('what holds outside of episodes may change under one', () => {
    const rig = new LinkRig({});
    rig.link.addEpisode(episode(0, 1_000, { latency: slow }));
    rig.link.setFaults({ ...FAULTLESS, latency: slower, partitioned: true });
    expect(rig.link.faults).toEqual({ ...FAULTLESS, latency: slow, partitioned: true });
    rig.runUntil(1_000);
    expect(rig.link.faults).toEqual({ ...FAULTLESS, latency: slower, partitioned: true });
  });
});

describe('chance', () => {
  const loss = independentLoss({ numerator: 1, denominator: 3 });
  const often = { numerator: 1, denominator: 2 };
  const span = { low: microseconds(1), high: milliseconds(3) };

  test('a fault switched on changes no draw of another', () => {
    const alone = new LinkRig({ loss }).lossesOf(500);
    const others: Partial<LinkFaults> = {
      latency: { kind: 'log-normal', median: milliseconds(3), spread: 9 },
      duplication: { ratio: often, by: span },
      reordering: { ratio: often, by: span },
      corruption: { ratio: often, caught: NEVER, ways: ['flip'] },
    };
    expect(new LinkRig({ loss, ...others }).lossesOf(500)).toEqual(alone);
  });

  test('links of one network have streams of their own', () => {
    const alone = new LinkRig({ loss }).lossesOf(500);
    expect(new LinkRig({ loss }, { name: 'another' }).lossesOf(500)).not.toEqual(alone);
  });
});

function episode(from: number, until: number, faults: Partial<LinkFaults>): Episode {
  return { from: instant(from), until: instant(until), faults };
}
