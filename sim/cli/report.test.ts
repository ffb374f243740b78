import { expect, test } from 'vitest';
import type { CatalogueEntry } from '../index.ts';
import { toJunit } from './junit.ts';
import type { Plan } from './plan.ts';
import { mergeReports, readReport } from './read-report.ts';
import { toReport, type Outcome, type Report } from './report.ts';
import { emptyLeg, mergeLegs, runSum, type Failure, type LegResult } from './result.ts';
import { runChunk } from './run-chunk.ts';
import { summarize } from './summary.ts';

const PLAN: Plan = {
  scenario: undefined,
  all: false,
  firstSeed: { high: 0, low: 0 },
  seeds: 256,
  steps: 3_000,
  shard: undefined,
};
const TIMING = { seconds: 2, jobs: 2, node: 'v20', busy: { default: 1.5, swarm: 0.5 } };
const UNSEEN: CatalogueEntry = { kind: 'sometimes', name: 'a <rare> "thing" & more' };

/** Four short runs of a scenario. */
function leg(scenario: string, first = 0): LegResult {
  const seeds = [0, 1, 2, 3].map((low) => ({
    seed: { high: 0, low: first + low },
    repetition: 'once' as const,
  }));
  return runChunk({ scenario, steps: 40, seeds, bail: false }).leg;
}

function outcome(changes: Partial<Outcome> = {}): Outcome {
  const legs = [leg('default'), leg('swarm')];
  const catalogue = legs.flatMap(({ properties }) => properties);
  return { plan: PLAN, ending: 'complete', catalogue, problems: [], legs, ...changes };
}

function failure(low: number, property = 'no call throws'): Failure {
  const seed = { high: 0, low };
  const actions = ['step 6: CloseAll', 'step 7: SetMaxFlows count 3'];
  return { property, scenario: 'default', seed, step: 7, detail: 'did <not>\nhold', actions };
}

function withFailures(...failures: Failure[]): Outcome {
  const failed = { ...leg('default'), failed: failures.length, failures };
  return outcome({ legs: [failed, leg('swarm')] });
}

test('the top of a report is what readers look for first', () => {
  const report = toReport(outcome(), TIMING);
  expect(Object.keys(report).slice(0, 6)).toEqual([
    'schema',
    'digest',
    'seeds',
    'steps',
    'properties',
    'unreached',
  ]);
  expect(report).toMatchObject({ schema: 2, seeds: 8, steps: 320, failures: [] });
  expect(report.scenarios.map(({ name }) => name)).toEqual(['default', 'swarm']);
});

test('two runs on one thread give one digest, other seeds another', () => {
  const digest = (legs: LegResult[]): string => toReport(outcome({ legs }), TIMING).digest;
  expect(digest([leg('default')])).toBe(digest([leg('default')]));
  expect(digest([leg('default', 1)])).not.toBe(digest([leg('default')]));
  expect(digest([{ ...leg('default'), scenario: 'swarm' }])).not.toBe(digest([leg('default')]));
});

test('legs join the same in any order, and every part of a run is in the sum', () => {
  const [one, two, three] = [leg('default', 0), leg('default', 4), leg('default', 8)];
  const joined = mergeLegs(mergeLegs(one, two), three);
  expect(mergeLegs(three, mergeLegs(two, one))).toEqual(joined);
  expect(mergeLegs(emptyLeg('default'), joined)).toEqual(joined);
  const seed = { high: 1, low: 2 };
  const sums = [
    runSum('default', seed, 'a'),
    runSum('swarm', seed, 'a'),
    runSum('default', { high: 2, low: 1 }, 'a'),
    runSum('default', seed, 'b'),
  ];
  expect(new Set(sums).size).toBe(4);
});

test('of many failures the lowest are kept, the number is exact', () => {
  const many = Array.from({ length: 150 }, (_, index) => failure(149 - index));
  const sum = many
    .map((one) => ({ ...emptyLeg('default'), failed: 1, failures: [one] }))
    .reduce<LegResult>(mergeLegs, emptyLeg('default'));
  expect(sum.failed).toBe(150);
  expect(sum.failures.map(({ seed }) => seed.low)).toEqual(
    Array.from({ length: 100 }, (_, index) => index),
  );
});

test('a property that was never seen fails a sweep of the default size only', () => {
  const missing = outcome({ catalogue: [...outcome().catalogue, UNSEEN] });
  const large = toReport(missing, TIMING);
  expect(stateOf(large, UNSEEN.name)).toBe('missed');
  expect(large.verdict).toBe('failed');
  const small = toReport({ ...missing, plan: { ...PLAN, seeds: 255 } }, TIMING);
  expect(stateOf(small, UNSEEN.name)).toBe('missed');
  expect(small.verdict).toBe('green');
});

test('a property seen in one scenario is seen, with the first scenario and seed', () => {
  const kind = 'sometimes' as const;
  const counts = { kind, name: UNSEEN.name, evaluations: 9, hits: 2, seeds: 1 };
  const first = { seed: { high: 0, low: 3 }, step: 5 };
  const swarm = { ...leg('swarm'), properties: [{ ...counts, first }] };
  const report = toReport(outcome({ legs: [leg('default'), swarm] }), TIMING);
  expect(report.properties.find(({ name }) => name === UNSEEN.name)).toEqual({
    ...counts,
    state: 'ok',
    first: { scenario: 'swarm', seed: '0x3', step: 5 },
  });
});

test('problems of the catalogue fail a sweep of any size', () => {
  const plan = { ...PLAN, seeds: 1 };
  expect(toReport(outcome({ plan, problems: ['sim/a.ts:1: twice'] }), TIMING).verdict).toBe(
    'failed',
  );
});

test('a report read back gives the same report', () => {
  const report = toReport(withFailures(failure(5)), TIMING);
  const read = readReport(JSON.stringify(report), 'a.json');
  expect(toReport(read.outcome, read.timing)).toEqual(report);
});

test.each([
  ['no JSON', 'x.json: not JSON', 'nonsense'],
  ['another schema', 'x.json: schema 1, this program reads 2', '{ "schema": 1 }'],
  ['no report', 'x.json.schema: expected a natural number', '{}'],
  ['a list', 'x.json.schema: expected a natural number', '[]'],
  ['a text', 'x.json: expected an object', '"text"'],
])('%s is refused: %s', (_, message, text) => {
  expect(() => readReport(text, 'x.json')).toThrow(message);
});

test.each([
  ['digest', 'x.json.scenarios[0].digest: expected a text'],
  ['failed', 'x.json.scenarios[0].failed: expected a natural number'],
  ['properties', 'x.json.scenarios[0].properties: expected a list'],
  ['actions', 'x.json.scenarios[0].actions.ClientDatagram: expected a natural number'],
])('a wrong %s is refused with its place', (field, message) => {
  const report = toReport(outcome(), TIMING);
  const [first, ...others] = report.scenarios;
  const broken = { ...report, scenarios: [{ ...first, [field]: { wrong: true } }, ...others] };
  expect(() => readReport(JSON.stringify(broken), 'x.json')).toThrow(message);
});

test('shards that are not of one sweep, given twice or missing are refused', () => {
  const shard = (index: number, changes: Partial<Plan> = {}): ReturnType<typeof readReport> => {
    const plan = { ...PLAN, shard: { index, count: 3 }, ...changes };
    return readReport(JSON.stringify(toReport(outcome({ plan }), TIMING)), `${index}.json`);
  };
  expect(() => mergeReports([shard(1), shard(2, { steps: 5 }), shard(3)])).toThrow(
    '2.json: not of the same sweep as 1.json',
  );
  expect(() => mergeReports([shard(1), shard(2), shard(2)])).toThrow('shard 2 of 3 is given twice');
  expect(() => mergeReports([shard(2)])).toThrow('of 3 shards, 2 are missing: 1, 3');
  expect(mergeReports([shard(3), shard(1), shard(2)]).outcome.plan).toEqual(PLAN);
});

test.each(['0/0', '2/1', '0/3', '1/1000000000', `1/${'9'.repeat(400)}`, '1/2/3', ''])(
  'a shard that cannot be is refused: %j',
  (shard) => {
    const report = toReport(outcome(), TIMING);
    const text = JSON.stringify({ ...report, plan: { ...report.plan, shard } });
    expect(() => readReport(text, 'x.json')).toThrow('x.json.plan.shard: expected a shard');
  },
);

test('of very many shards, the missing ones are counted without a list of them', () => {
  const plan = { ...PLAN, shard: { index: 2, count: 999_999_999 } };
  const one = readReport(JSON.stringify(toReport(outcome({ plan }), TIMING)), 'x.json');
  expect(() => mergeReports([one])).toThrow(
    'of 999999999 shards, 999999998 are missing: 1, 3, 4, 5, 6, 7, 8, 9, 10, 11',
  );
});

test('a report out of a file does not steer the terminal', () => {
  const steering = { ...failure(5, '\u001b[2Jred'), detail: 'two\nlines \u202e\u009b' };
  const report = toReport(withFailures(steering), TIMING);
  const read = readReport(JSON.stringify(report), 'x.json');
  const told = summarize(toReport(read.outcome, TIMING), { colour: false, verbose: true });
  expect(told).toContain('FAILED: \\u001b[2Jred');
  expect(told).toContain('  two\n  lines \\u202e\\u009b\n');
  expect(told.replaceAll('\n', '')).not.toMatch(/\p{Cc}|\p{Bidi_Control}/u);
});

test('an interrupted shard makes an interrupted sweep', () => {
  const of = (index: number, ending: Outcome['ending']): ReturnType<typeof readReport> => {
    const plan = { ...PLAN, shard: { index, count: 2 } };
    const text = JSON.stringify(toReport(outcome({ plan, ending }), TIMING));
    return readReport(text, `${index}.json`);
  };
  const { outcome: merged } = mergeReports([of(1, 'complete'), of(2, 'interrupted')]);
  expect(toReport(merged, TIMING).verdict).toBe('interrupted');
});

test('JUnit is well-formed, whatever a detail holds, and counts its cases', () => {
  const nasty = { ...failure(5), detail: '<&">]]>\u0000\ud800 \u001b[31m' };
  const missing = outcome({ catalogue: [UNSEEN], legs: withFailures(nasty).legs });
  const xml = toJunit(toReport({ ...missing, problems: ['sim/a.ts:1: "x" & <y>'] }, TIMING));
  const tags = wellFormed(xml);
  const cases = tags.filter((tag) => tag === 'testcase').length;
  const failures = tags.filter((tag) => tag === 'failure').length;
  expect(xml).toContain(`tests="${cases}" failures="${failures}" skipped="`);
  expect(failures).toBeGreaterThanOrEqual(3);
  expect(xml).toContain('name="a &lt;rare&gt; &quot;thing&quot; &amp; more"');
  expect(xml).toContain('classname="simulation.seed.default" name="0x5"');
});

test('in a small sweep a missed property is a skipped case of JUnit', () => {
  const plan = { ...PLAN, seeds: 4 };
  const xml = toJunit(toReport(outcome({ plan, catalogue: [UNSEEN] }), TIMING));
  wellFormed(xml);
  expect(xml).toContain('&amp; more"><skipped ');
});

test('the summary tells a failure with everything needed to look at it again', () => {
  const report = toReport(withFailures(failure(5)), TIMING);
  expect(summarize(report, { colour: false, verbose: false }).split('\n\n')[0]).toBe(
    [
      'FAILED: no call throws',
      '  scenario default, seed 0x5, step 7',
      '  did <not>',
      '  hold',
      '  last actions:',
      '    step 6: CloseAll',
      '    step 7: SetMaxFlows count 3',
      '  replay: SOZU_UDP_SIM_SEED=0x5 SOZU_UDP_SIM_STEPS=3000 npm run sim -- --scenario default',
    ].join('\n'),
  );
});

test('the summary tells the first failures in full and names further ones', () => {
  const many = Array.from({ length: 40 }, (_, index) => failure(index));
  const report = toReport(withFailures(...many), TIMING);
  const text = summarize(report, { colour: false, verbose: false });
  expect(text.match(/^FAILED/gm)).toHaveLength(5);
  expect(text).toContain('40 seeds failed; further ones: default 0x5, default 0x6, ');
  expect(text).toContain('default 0x18, …');
  expect(summarize(report, { colour: false, verbose: true }).match(/^FAILED/gm)).toHaveLength(40);
});

test('the summary has a table of actions, drops and closes, and names what was missed', () => {
  const report = toReport(outcome({ catalogue: [UNSEEN] }), TIMING);
  const text = summarize(report, { colour: false, verbose: false });
  expect(text).toMatch(/^ +default +swarm$/m);
  expect(text).toMatch(/^ {2}seeds +4 +4$/m);
  expect(text).toMatch(/^ {2}ClientDatagram +\d+ +\d+$/m);
  expect(text).toMatch(/^ {2}Truncated +\d+ +\d+$/m);
  expect(text).toMatch(/^ {2}RequestsReached +\d+ +\d+$/m);
  expect(text).toContain(`missed: ${UNSEEN.name}`);
  expect(text).toMatch(/^digest [0-9a-f]{16}\n$/m);
});

test('the summary of a small sweep counts what it missed, and names it when asked to', () => {
  const catalogue = Array.from({ length: 21 }, (_, index) => ({
    ...UNSEEN,
    name: `${UNSEEN.name} ${index}`,
  }));
  const report = toReport(outcome({ catalogue }), TIMING);
  const small = { ...report, judgesMissed: false };
  expect(summarize(small, { colour: false, verbose: false })).not.toContain(UNSEEN.name);
  expect(summarize(small, { colour: false, verbose: false })).toMatch(
    /^ {2}missed: \d+, which --verbose names$/m,
  );
  expect(summarize(small, { colour: false, verbose: true })).toContain(`missed: ${UNSEEN.name} 20`);
  const whole = { ...report, judgesMissed: true };
  expect(summarize(whole, { colour: false, verbose: false })).toContain(
    `missed: ${UNSEEN.name} 20`,
  );
});

test('colours are there only when asked for', () => {
  const report = toReport(withFailures(failure(5)), TIMING);
  expect(summarize(report, { colour: false, verbose: true })).not.toContain('\u001b');
  expect(summarize(report, { colour: true, verbose: true })).toContain('\u001b[');
});

function stateOf(report: Report, property: string): string | undefined {
  return report.properties.find(({ name }) => name === property)?.state;
}

/** The names of all elements; throws when tags do not nest, or when a character or entity has no place in XML. */
function wellFormed(xml: string): string[] {
  const names: string[] = [];
  const open: string[] = [];
  const body = xml.replace(/^<\?xml version="1.0" encoding="UTF-8"\?>\n/, '');
  expect(body).not.toMatch(/&(?!(?:amp|lt|gt|quot|#10);)/);
  // oxlint-disable-next-line no-control-regex -- these must not be in the file
  expect(body).not.toMatch(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]|\p{Surrogate}/u);
  const rest = body.replace(
    /<(\/?)([a-z]+)((?: [a-z]+="[^"<]*")*)(\/?)>/g,
    (_, end: string, name: string, _attributes: string, alone: string) => {
      if (end === '/') expect(open.pop()).toBe(name);
      else names.push(name);
      if (end === '' && alone === '') open.push(name);
      return '';
    },
  );
  expect(open).toEqual([]);
  expect(rest).not.toMatch(/[<>]/);
  return names;
}
