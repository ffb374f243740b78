import { describe, expect, test } from 'vitest';
import { DEFAULT, SEEDS_GRAMMAR } from '../../scenarios/default.ts';
import { SWARM } from '../../scenarios/swarm.ts';
import { chiSquareFits } from '../../test/chi-square.ts';
import { seededStreams } from '../random.ts';
import { seedFromNumber } from '../seed.ts';
import { ACTION_KINDS, type Action, type ActionKind, type DrawnCluster } from './actions.ts';
import { ActionSource, type Grammar, type Surroundings } from './grammar.ts';

const AROUND: Surroundings = { flowCount: 10, maxRx: 1_500, remembered: 5 };
const STEPS = 100_000;

/** Each step of one fixed seed: no test of this file can flake. */
const DRAWN = steps(SEEDS_GRAMMAR, 2_026, STEPS);
const CHOSEN = DRAWN.map(([first]) => first!);

describe('spec §11.3: the table of actions', () => {
  test('has the weights of the seeds', () => {
    const kinds = ACTION_KINDS.filter((kind) => SEEDS_GRAMMAR.weights[kind] !== undefined);
    const counts = kinds.map((kind) => CHOSEN.filter((action) => action.kind === kind).length);
    expect(chiSquareFits(counts, [34, 16, 14, 14, 6, 5, 4, 3, 2, 2])).toBe(true);
    expect(chiSquareFits(counts, [36, 14, 14, 14, 6, 5, 4, 3, 2, 2])).toBe(false);
  });

  test('a client is any of the 32', () => {
    const sources = of('ClientDatagram').map(({ source }) => source);
    expect(chiSquareFits(tally(sources, 0, 31), uniform(32))).toBe(true);
  });

  test('a reply goes to a remembered flow in 70 of 100, else to any id', () => {
    const flows = of('BackendDatagram').map(({ flow }) => flow);
    const known = flows.flatMap((flow) => (flow.by === 'memory' ? [flow.index] : []));
    const ids = flows.flatMap((flow) => (flow.by === 'id' ? [flow.id] : []));
    expect(chiSquareFits([known.length, ids.length], [70, 30])).toBe(true);
    expect(chiSquareFits(tally(known, 0, 4), uniform(5))).toBe(true);
    expect(chiSquareFits(tally(ids, 0, 63), uniform(64))).toBe(true);
  });

  test('without a memory every reply goes to an id', () => {
    const drawn = steps(SEEDS_GRAMMAR, 7, 2_000, { ...AROUND, remembered: 0 }).flat();
    const flows = drawn.flatMap((one) => (one.kind === 'BackendDatagram' ? [one.flow.by] : []));
    expect(new Set(flows)).toEqual(new Set(['id']));
  });

  test('the clock jumps in 12 of 100, else it steps', () => {
    const waits = of('AdvanceClock').map(({ ms }) => ms);
    const long = waits.filter((ms) => ms >= 5_000);
    const short = waits.filter((ms) => ms < 5_000);
    expect(chiSquareFits([long.length, short.length], [12, 88])).toBe(true);
    expect(chiSquareFits(tally(long, 5_000, 14_999, 1_000), uniform(10))).toBe(true);
    expect(chiSquareFits(tally(short, 1, 299, 23), uniform(13))).toBe(true);
  });

  test('a cap shrinks to within the flows in half the cases, else it is any of 63', () => {
    const counts = of('SetMaxFlows').map(({ count }) => count);
    const weights = Array.from({ length: 64 }, (_, count) => {
      const shrinks = count <= AROUND.flowCount ? 1 / (AROUND.flowCount + 1) : 0;
      return shrinks + (count >= 1 ? 1 / 63 : 0);
    });
    expect(chiSquareFits(tally(counts, 0, 63), weights)).toBe(true);
  });

  test('an abort is of any id, and a largest datagram of any size', () => {
    const ids = of('AbortFlow').map(({ id }) => id);
    expect(chiSquareFits(tally(ids, 0, 63), uniform(64))).toBe(true);
    const bytes = of('SetMaxRx').map((action) => action.bytes);
    expect(chiSquareFits(tally(bytes, 16, 4_095, 408), uniform(10))).toBe(true);
  });

  test('a drained listener is followed by one with any cap and a cluster', () => {
    const drains = of('Drain');
    const caps = drains.map(({ cap }) => cap);
    expect(chiSquareFits(tally(caps, 1, 31), uniform(31))).toBe(true);
    expect(drains.every(({ next }) => next.cluster >= 0)).toBe(true);
  });

  test('a view mostly changes health; of 32, three change the list, one empties it, three restore all', () => {
    const sorts = of('BackendView').map(({ change }) => {
      if (change.kind !== 'List') return change.kind;
      return change.members === 0 ? 'nobody' : 'List';
    });
    const counts = ['Health', 'List', 'nobody', 'Restore'].map(
      (sort) => sorts.filter((one) => one === sort).length,
    );
    expect(chiSquareFits(counts, [25, 45 / 16, 1 + 3 / 16, 3])).toBe(true);
  });
});

describe('spec §11.3: buggify', () => {
  const nasty = DRAWN.map((actions) =>
    actions.slice(1).filter(({ kind }) => kind !== 'EarlyTimer'),
  ).filter(({ length }) => length > 0);

  test('strikes in 2 of 100 steps', () => {
    expect(chiSquareFits([nasty.length, STEPS - nasty.length], [2, 98])).toBe(true);
    expect(chiSquareFits([nasty.length, STEPS - nasty.length], [2.4, 97.6])).toBe(false);
  });

  test('in one of four ways, each as often', () => {
    const ways: readonly ActionKind[] = [
      'BackendView',
      'ReconfigCluster',
      'SetMaxFlows',
      'AdvanceClock',
    ];
    const counts = ways.map((kind) => nasty.filter(([first]) => first?.kind === kind).length);
    expect(counts.reduce((sum, count) => sum + count)).toBe(nasty.length);
    expect(chiSquareFits(counts, uniform(4))).toBe(true);
  });

  test('with bursts of two to five, caps of at most one and jumps of half a minute or more', () => {
    const bursts = nasty.filter(([first]) => first?.kind === 'ReconfigCluster');
    const lengths = bursts.map(({ length }) => length);
    expect(chiSquareFits(tally(lengths, 2, 5), uniform(4))).toBe(true);
    const strikes = nasty.flat();
    const caps = strikes.flatMap((one) => (one.kind === 'SetMaxFlows' ? [one.count] : []));
    expect(chiSquareFits(tally(caps, 0, 1), uniform(2))).toBe(true);
    const jumps = strikes.flatMap((one) => (one.kind === 'AdvanceClock' ? [one.ms / 1_000] : []));
    expect(chiSquareFits(tally(jumps, 30, 599, 57), uniform(10))).toBe(true);
  });

  test('and a view that offers nobody comes with clients, and is restored', () => {
    for (const strike of nasty.filter(([first]) => first?.kind === 'BackendView')) {
      expect(strike[0]).toMatchObject({ change: { kind: 'List', members: 0 } });
      expect(strike.at(-1)).toEqual({ kind: 'BackendView', change: { kind: 'Restore' } });
      const clients = strike.slice(1, -1).map(({ kind }) => kind);
      expect(new Set(clients)).toEqual(new Set(['ClientDatagram']));
    }
  });

  test('timers are early in 3 of 100 steps, by 0 to 99 ms', () => {
    const early = DRAWN.flat().flatMap((one) => (one.kind === 'EarlyTimer' ? [one.earlyMs] : []));
    expect(chiSquareFits([early.length, STEPS - early.length], [3, 97])).toBe(true);
    expect(chiSquareFits(tally(early, 0, 99, 10), uniform(10))).toBe(true);
  });
});

describe('spec §11.2: the draws', () => {
  test('a payload is empty, tiny, fitting or oversize', () => {
    const lengths = of('ClientDatagram').map(({ payload }) => payload.length);
    const inside = (least: number, most: number): number =>
      lengths.filter((length) => length >= least && length <= most).length;
    const counts = [inside(0, 0), inside(1, 15), inside(16, 511), inside(512, 512)];
    // Of the ten in sixteen that fit, those above 512 become 512, and a few are tiny.
    const fitting = (count: number): number => (10 * count) / AROUND.maxRx;
    const weights = [1, 2 + fitting(15), fitting(496), fitting(989), 3];
    expect(chiSquareFits([...counts, inside(1_501, 3_549)], weights)).toBe(true);
    expect(inside(513, 1_500) + inside(3_550, Infinity)).toBe(0);
    const oversize = lengths.filter((length) => length > AROUND.maxRx);
    expect(chiSquareFits(tally(oversize, 1_501, 3_549, 683), uniform(3))).toBe(true);
  });

  test('its byte is any', () => {
    const fills = of('ClientDatagram').map(({ payload }) => payload.fill);
    expect(chiSquareFits(tally(fills, 0, 255), uniform(256))).toBe(true);
  });

  test('a cluster has each of its settings as often as the seeds say', () => {
    const clusters = of('ReconfigCluster').map(({ config }) => config);
    const share = (holds: (one: DrawnCluster) => boolean): number[] => {
      const count = clusters.filter(holds).length;
      return [count, clusters.length - count];
    };
    const every = (value: (one: DrawnCluster) => number): number[] => clusters.map(value);
    expect(
      chiSquareFits(
        tally(
          every(({ cluster }) => cluster),
          -1,
          2,
        ),
        [10, 30, 30, 30],
      ),
    ).toBe(true);
    expect(
      chiSquareFits(
        share(({ affinityWithPort }) => affinityWithPort),
        [50, 50],
      ),
    ).toBe(true);
    expect(
      chiSquareFits(
        share(({ sendProxyProtocol }) => sendProxyProtocol),
        [30, 70],
      ),
    ).toBe(true);
    expect(
      chiSquareFits(
        share(({ everyDatagram }) => everyDatagram),
        [50, 50],
      ),
    ).toBe(true);
    const responses = tally(
      every((one) => one.responses),
      0,
      3,
    );
    expect(chiSquareFits(responses, [180, 40, 40, 40])).toBe(true);
    const requests = tally(
      every((one) => one.requests),
      0,
      5,
    );
    expect(chiSquareFits(requests, [300, 40, 40, 40, 40, 40])).toBe(true);
    for (const timeouts of [every(({ frontMs }) => frontMs), every(({ backMs }) => backMs)]) {
      expect(chiSquareFits(tally(timeouts, 500, 4_999, 500), uniform(9))).toBe(true);
    }
    expect(share(({ perIp, perSubnet }) => perIp === 0 && perSubnet === 0)[1]).toBe(0);
  });

  test('a run begins with any cap, policy and weights, and with a cluster', () => {
    const states = Array.from({ length: 3_000 }, (_, number) => {
      const seed = seedFromNumber(number);
      const streams = seededStreams(seed);
      return new ActionSource(DEFAULT.grammarOf(streams), seed, streams).initial();
    });
    expect(
      chiSquareFits(
        tally(
          states.map(({ cap }) => cap),
          1,
          31,
        ),
        uniform(31),
      ),
    ).toBe(true);
    const { policies } = SEEDS_GRAMMAR;
    const places = states.map(({ policy }) => policies.indexOf(policy));
    expect(chiSquareFits(tally(places, 0, 5), uniform(6))).toBe(true);
    const weights = states.flatMap((state) =>
      state.weights.map((one) => [1, 50, 100, 255].indexOf(one)),
    );
    expect(chiSquareFits(tally(weights, 0, 3), uniform(4))).toBe(true);
    expect(states.every(({ config }) => config.cluster >= 0)).toBe(true);
  });
});

describe('swarm', () => {
  const grammars = Array.from({ length: 2_000 }, (_, number) =>
    SWARM.grammarOf(seededStreams(seedFromNumber(number))),
  );

  test('leaves out each action in half the seeds, clients in none', () => {
    for (const kind of ACTION_KINDS.filter((one) => one !== 'EarlyTimer')) {
      const kept = grammars.filter(({ weights }) => weights[kind] !== undefined).length;
      if (kind === 'ClientDatagram') expect(kept).toBe(grammars.length);
      else expect(chiSquareFits([kept, grammars.length - kept], [1, 1])).toBe(true);
    }
  });

  test('what is left out is not drawn, and source limits are where they are on', () => {
    const grammar: Grammar = {
      ...SEEDS_GRAMMAR,
      weights: { ClientDatagram: 3, ReconfigCluster: 1 },
      buggifyPermille: 0,
      earlyTimerPermille: 0,
      sourceLimits: true,
    };
    const drawn = steps(grammar, 5, 8_000).flat();
    expect(drawn).toHaveLength(8_000);
    expect(new Set(drawn.map(({ kind }) => kind))).toEqual(
      new Set(['ClientDatagram', 'ReconfigCluster']),
    );
    const limits = drawn.flatMap((one) => (one.kind === 'ReconfigCluster' ? [one.config] : []));
    expect(
      chiSquareFits(
        tally(
          limits.map(({ perIp }) => perIp),
          0,
          4,
        ),
        [4, 2, 2, 2, 2],
      ),
    ).toBe(true);
    const subnets = tally(
      limits.map(({ perSubnet }) => perSubnet),
      0,
      12,
    );
    expect(chiSquareFits(subnets, [6, ...uniform(12)])).toBe(true);
  });
});

function steps(grammar: Grammar, number: number, count: number, around = AROUND): Action[][] {
  const seed = seedFromNumber(number);
  const source = new ActionSource(grammar, seed, seededStreams(seed));
  return Array.from({ length: count }, () => source.step(around));
}

/** The actions of this kind that the table drew. */
function of<Kind extends ActionKind>(kind: Kind): Extract<Action, { kind: Kind }>[] {
  return CHOSEN.filter((action): action is Extract<Action, { kind: Kind }> => action.kind === kind);
}

/** How many fall into each class of `width` numbers, from `least` to `most`. */
function tally(numbers: readonly number[], least: number, most: number, width = 1): number[] {
  const counts = Array.from({ length: Math.ceil((most - least + 1) / width) }, () => 0);
  for (const number of numbers) counts[Math.floor((number - least) / width)]! += 1;
  return counts;
}

function uniform(classes: number): number[] {
  return Array.from({ length: classes }, () => 1);
}
