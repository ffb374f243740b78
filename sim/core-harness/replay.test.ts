import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SCENARIOS } from '../../scenarios/index.ts';
import { Observer, unreachable } from '../properties.ts';
import { seededStreams } from '../random.ts';
import { seedFromNumber } from '../seed.ts';
import type { Action } from './actions.ts';
import { ActionSource } from './grammar.ts';
import { decodeReplay } from './replay-decode.ts';
import { encodeReplay, makeReplay, verifyReplay, type Replay } from './replay.ts';
import { runActions, runSeed } from './run.ts';
import { AS_MODELLED, INTACT } from './properties.ts';

unreachable('a replay of a test expects what nothing violates');

/** Whatever the scenarios draw, as a replay. */
const replays = fc
  .tuple(fc.constantFrom(...SCENARIOS), fc.nat(1_000_000), fc.integer({ min: 0, max: 120 }))
  .map(([scenario, number, steps]) => {
    const seed = seedFromNumber(number);
    const actions: Action[] = [];
    const onAction = (action: Action): void => void actions.push(action);
    runSeed(scenario, seed, steps, { observer: new Observer(), onAction });
    const streams = seededStreams(seed);
    const initial = new ActionSource(scenario.grammarOf(streams), seed, streams).initial();
    return makeReplay('drawn', 'Something drawn.', { initial, actions, property: INTACT.name });
  });

const [SAMPLE] = fc.sample(
  replays.filter(({ actions }) => actions.length > 60),
  {
    numRuns: 1,
    seed: 1,
  },
);

const TERMS = {
  responsesPerRequest: true,
  requestsLinger: false,
  graceMs: 9,
  forwardEmpty: false,
  rate: 4,
  burst: 1,
  creditFactor: 3,
  creditFloor: 0,
};

describe('the format', () => {
  test('keeps whatever can be drawn', () => {
    fc.assert(
      fc.property(replays, (replay) => {
        expect(decodeReplay(encodeReplay(replay))).toEqual({ ok: true, replay });
      }),
      { numRuns: 50 },
    );
  });

  test('reads a cluster with terms, and one of before that has none', () => {
    const [plain] = fc.sample(
      replays.filter(({ initial }) => initial.config.terms === undefined),
      { numRuns: 1, seed: 2 },
    );
    const text = encodeReplay(plain!);
    const withTerms = text.replace('"perSubnet":', `"terms":${JSON.stringify(TERMS)},"perSubnet":`);
    expect(decodeReplay(text)).toEqual({ ok: true, replay: plain });
    expect(decodeReplay(withTerms)).toMatchObject({
      ok: true,
      replay: { initial: { config: { terms: TERMS } } },
    });
  });

  test('has one action a line', () => {
    const lines = encodeReplay(SAMPLE!).split('\n');
    for (const action of SAMPLE!.actions) {
      const line = `    ${JSON.stringify(action)}`;
      expect(lines.includes(line) || lines.includes(`${line},`)).toBe(true);
    }
  });

  test('of hostile JSON says what is wrong, and never throws', () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string()), (text) => {
        const decoding = decodeReplay(text);
        expect(decoding.ok).toBe(false);
        if (!decoding.ok) expect(decoding.problems.length).toBeGreaterThan(0);
      }),
    );
    expect(decodeReplay('['.repeat(200_000))).toMatchObject({ ok: false });
  });

  test('with any one value replaced is refused, or runs', () => {
    const values = fc.oneof(fc.jsonValue(), fc.integer(), fc.maxSafeInteger(), fc.double());
    fc.assert(
      fc.property(replays, fc.nat(), values, (replay, place, value) => {
        const decoding = decodeReplay(replaceLeaf(encodeReplay(replay), place, value));
        if (!decoding.ok) return;
        const { initial, actions } = decoding.replay;
        expect(
          runActions(initial, actions, { observer: new Observer() }).violation,
        ).toBeUndefined();
      }),
      { numRuns: 300 },
    );
  });

  test.each<[string, (text: string) => string, string, string]>([
    ['no JSON', (text) => text.slice(1), '$', 'not JSON'],
    ['no object', () => '[]', '$', 'expected an object'],
    [
      'another schema',
      swap('"schema": 1', '"schema": 2'),
      'schema',
      'expected an integer from 1 to 1',
    ],
    ['no digest', (text) => text.replace(/ {2}"digest".*\n/, ''), 'digest', 'missing'],
    ['a name with a path', swap('"drawn"', '"../drawn"'), 'name', 'expected a name in kebab-case'],
    ['another outcome', swap('"fixed"', '"fine"'), 'outcome', 'expected one of fixed, reproduces'],
    ['a field nobody knows', swap('"name"', '"nome": 1, "name"'), 'nome', 'unknown field'],
    [
      'a huge cap',
      swap(/"cap":\d+,"hash/, '"cap":4e9,"hash'),
      'initial.cap',
      'expected an integer',
    ],
    [
      'a fraction',
      swap(/"cap":\d+,"hash/, '"cap":1.5,"hash'),
      'initial.cap',
      'expected an integer',
    ],
    [
      'too few weights',
      swap(/"weights":\[\d+,/, '"weights":['),
      'initial.weights',
      'expected a list',
    ],
    [
      'a weight below zero',
      swap(/"weights":\[\d+/, '"weights":[-1'),
      'initial.weights[0]',
      'expected an integer from 0 to 255',
    ],
    [
      'a policy nobody has',
      swap(/"policy":"\w+"/, '"policy":"FIRST"'),
      'initial.policy',
      'expected one of ROUND_ROBIN',
    ],
    [
      'an action nobody knows',
      swap(/\[\n.*\n/, '[\n{"kind":"Explode"},\n'),
      'actions[0].kind',
      'expected one of ClientDatagram',
    ],
    [
      'an action without its field',
      swap(/\[\n.*\n/, '[\n{"kind":"AdvanceClock"},\n'),
      'actions[0].ms',
      'missing, expected an integer',
    ],
    [
      'a payload that is a text',
      swap(/\[\n.*\n/, '[\n{"kind":"ClientDatagram","source":0,"payload":"x"},\n'),
      'actions[0].payload',
      'expected an object',
    ],
    [
      'a flow known by its colour',
      swap(
        /\[\n.*\n/,
        '[\n{"kind":"BackendDatagram","flow":{"by":"colour"},"payload":{"length":1,"fill":0}},\n',
      ),
      'actions[0].flow.by',
      'expected one of id, memory',
    ],
    [
      'a fate nobody has',
      swap(/\[\n.*\n/, '[\n{"kind":"LoseBackend","backend":0,"removed":true,"fate":"mourn"},\n'),
      'actions[0].fate',
      'expected one of pin, rebind, close',
    ],
    [
      'a host out of the pool',
      swap(/\[\n.*\n/, '[\n{"kind":"Deny","hosts":65536},\n'),
      'actions[0].hosts',
      'expected an integer from 0 to 65535',
    ],
    [
      'a rate that divides no second',
      swap('"perSubnet":', `"terms":${JSON.stringify({ ...TERMS, rate: 3 })},"perSubnet":`),
      'initial.config.terms.rate',
      'expected one of 0, 1, 2',
    ],
    [
      'terms without a field',
      swap('"perSubnet":', '"terms":{},"perSubnet":'),
      'initial.config.terms.graceMs',
      'missing, expected an integer',
    ],
  ])('refuses %s, by its path', (_, damage, path, problem) => {
    const decoding = decodeReplay(damage(encodeReplay(SAMPLE!)));
    expect(decoding).toMatchObject({ ok: false });
    const problems = decoding.ok ? [] : decoding.problems;
    expect(problems).toContainEqual({ path, problem: expect.stringContaining(problem) });
  });

  test('names every problem at once', () => {
    const text = encodeReplay(SAMPLE!)
      .replace('"schema": 1', '"schema": 0')
      .replace('"fixed"', '1');
    const decoding = decodeReplay(text);
    const paths = decoding.ok ? [] : decoding.problems.map(({ path }) => path);
    expect(paths).toEqual(['schema', 'outcome']);
  });
});

describe('a replay today', () => {
  test('is fixed when every property holds and it takes its course', () => {
    expect(verifyReplay(SAMPLE!)).toEqual({ kind: 'fixed' });
  });

  test('is told fixed even if it is marked as reproducing', () => {
    expect(verifyReplay({ ...SAMPLE!, outcome: 'reproduces', digest: '0'.repeat(16) })).toEqual({
      kind: 'fixed',
    });
  });

  test.each<[string, Partial<Replay>, string]>([
    [
      'its property is gone',
      { property: 'water is wet' },
      'no property "water is wet" is declared',
    ],
    ['its digest is another', { digest: '0'.repeat(16) }, 'takes another course'],
    ['an action is gone', { actions: SAMPLE!.actions.slice(1) }, 'takes another course'],
  ])('is stale when %s', (_, change, reason) => {
    const verdict = verifyReplay({ ...SAMPLE!, ...change });
    expect(verdict).toEqual({ kind: 'stale', reason: expect.stringContaining(reason) });
  });

  test('is made with what it does', () => {
    const { initial, actions } = SAMPLE!;
    const made = makeReplay('made', 'Made.', { initial, actions, property: AS_MODELLED.name });
    expect(made).toMatchObject({ outcome: 'fixed', digest: SAMPLE!.digest });
  });
});

function swap(before: string | RegExp, after: string): (text: string) => string {
  return (text) => text.replace(before, after);
}

/** The JSON text with the leaf of that place, modulo how many there are, replaced. */
function replaceLeaf(text: string, place: number, value: unknown): string {
  let leaves = 0;
  const count = (_: string, leaf: unknown): unknown => {
    if (typeof leaf !== 'object') leaves += 1;
    return leaf;
  };
  JSON.parse(text, count);
  const chosen = place % leaves;
  leaves = 0;
  const parsed: unknown = JSON.parse(text, (_: string, leaf: unknown): unknown => {
    if (typeof leaf === 'object') return leaf;
    leaves += 1;
    return leaves - 1 === chosen ? value : leaf;
  });
  return JSON.stringify(parsed);
}
