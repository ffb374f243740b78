import { expect, test } from 'vitest';
import { readSettings, UsageError, type Environment, type Flags } from './settings.ts';

const PLAIN = {
  plan: {
    scenario: undefined,
    all: false,
    firstSeed: { high: 0, low: 0 },
    seeds: 256,
    steps: 3_000,
    shard: undefined,
  },
  single: false,
  jobs: 2,
  bail: false,
  verbose: false,
  check: undefined,
  json: undefined,
  junit: undefined,
};

function settings(flags: Flags, environment: Environment = {}): ReturnType<typeof readSettings> {
  return readSettings(flags, environment, 2);
}

test('without flags and variables it is the sweep of the specification, on every core', () => {
  expect(settings({})).toEqual(PLAIN);
});

test('empty and blank variables count as unset', () => {
  const environment = { SOZU_UDP_SIM_SEED: '', SOZU_UDP_SIM_SEEDS: ' ', SOZU_UDP_SIM_STEPS: '\t' };
  expect(settings({}, environment)).toEqual(PLAIN);
});

test('variables count, and flags win over them, even over broken ones', () => {
  const environment = { SOZU_UDP_SIM_SEEDS: '12', SOZU_UDP_SIM_STEPS: ' 34 ' };
  expect(settings({}, environment).plan).toMatchObject({ seeds: 12, steps: 34 });
  expect(settings({ seeds: '5', steps: '6' }, environment).plan).toMatchObject({
    seeds: 5,
    steps: 6,
  });
  expect(settings({ seeds: '5' }, { SOZU_UDP_SIM_SEEDS: 'many' }).plan.seeds).toBe(5);
});

test.each<[string, Flags, Environment]>([
  ['the flag', { seed: '0xdeadbeef' }, { SOZU_UDP_SIM_SEED: '1' }],
  ['the variable', {}, { SOZU_UDP_SIM_SEED: ' 3735928559 ' }],
])('one seed by %s: alone, in default, told', (_, flags, environment) => {
  const { plan, single, jobs } = settings(flags, environment);
  expect({ single, jobs }).toEqual({ single: true, jobs: 1 });
  expect(plan).toMatchObject({
    scenario: 'default',
    firstSeed: { high: 0, low: 0xdeadbeef },
    seeds: 1,
  });
});

test('a flag for a sweep wins over the variable for one seed', () => {
  for (const flags of [{ seeds: '4' }, { firstSeed: '4' }, { shard: '1/2' }]) {
    expect(settings(flags, { SOZU_UDP_SIM_SEED: '7' }).single).toBe(false);
  }
});

test('one seed may name its scenario', () => {
  expect(settings({ seed: '1', scenario: 'swarm' }).plan.scenario).toBe('swarm');
});

test('all of a small sweep is repeated, a share of a large one, or the share that is given', () => {
  expect(settings({ checkDeterminism: true }).check).toEqual({ every: 1, freshEvery: 64 });
  expect(settings({ checkDeterminism: true, seeds: '2000' }).check?.every).toBe(20);
  expect(settings({ checkDeterminism: '25%' }).check?.every).toBe(4);
  expect(settings({ checkDeterminism: '25' }).check?.every).toBe(4);
});

test.each<[Flags, Environment, string]>([
  [{ seeds: '0' }, {}, '--seeds: not a number: "0"'],
  [{ seeds: '-1' }, {}, '--seeds: not a number: "-1"'],
  [{ seeds: '1.5' }, {}, '--seeds: not a number: "1.5"'],
  [{ seeds: '0x10' }, {}, '--seeds: not a number: "0x10"'],
  [{ seeds: '' }, {}, '--seeds: not a number: ""'],
  [{ steps: '9999999999' }, {}, '--steps: not a number: "9999999999"'],
  [{ jobs: '0' }, {}, '--jobs: not a number: "0"'],
  [{ seed: '' }, {}, '--seed: not a seed'],
  [{ seed: '1e3' }, {}, '--seed: not a seed'],
  [{ seed: '0x10000000000000000' }, {}, '--seed: seed 0x10000000000000000 needs more than 64 bits'],
  [{ seed: '1', seeds: '2' }, {}, '--seed runs one seed'],
  [{ firstSeed: 'x' }, {}, '--first-seed: not a seed'],
  [{ shard: '0/4' }, {}, '--shard: not a shard: "0/4"'],
  [{ shard: '3' }, {}, '--shard: not a shard: "3"'],
  [{ scenario: '' }, {}, '--scenario: no scenario ""'],
  [{ all: true, scenario: 'swarm' }, {}, '--all runs every scenario'],
  [{ all: true, seed: '1' }, {}, '--all runs every scenario'],
  [{ scenario: 'dns-burst', steps: '5' }, {}, '--steps: a seed of dns-burst lasts as long'],
  [{ checkDeterminism: '0' }, {}, '--check-determinism: not a share'],
  [{ checkDeterminism: '101%' }, {}, '--check-determinism: not a share'],
  [{}, { SOZU_UDP_SIM_SEED: 'x' }, 'SOZU_UDP_SIM_SEED: not a seed'],
  [{}, { SOZU_UDP_SIM_SEEDS: 'x' }, 'SOZU_UDP_SIM_SEEDS: not a number'],
  [{}, { SOZU_UDP_SIM_STEPS: 'x' }, 'SOZU_UDP_SIM_STEPS: not a number'],
])('%j with %j is refused: %s', (flags, environment, message) => {
  expect(() => settings(flags, environment)).toThrow(UsageError);
  expect(() => settings(flags, environment)).toThrow(message);
});
