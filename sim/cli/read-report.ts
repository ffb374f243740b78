/** Reads reports back, and joins those of all shards into the very report that one run would have written. */
import { parseSeed, type PropertyCounts, type Seed } from '../index.ts';
import { JsonReader, ShapeError } from './json-reader.ts';
import type { Plan, Shard } from './plan.ts';
import { PROPERTY_KINDS, REPORT_SCHEMA, type Outcome, type Timing } from './report.ts';
import { COUNTED, LEG_KINDS, mergeLegs, type Failure, type LegResult } from './result.ts';

export interface ReadReport {
  readonly file: string;
  readonly outcome: Outcome;
  readonly timing: Timing;
}

/** Reads the text of a report. Throws ShapeError with the place where it is none. */
export function readReport(text: string, file: string): ReadReport {
  const root = new JsonReader(parseJson(text, file), file);
  const schema = root.field('schema').count();
  if (schema !== REPORT_SCHEMA) {
    throw new ShapeError(`${file}: schema ${schema}, this program reads ${REPORT_SCHEMA}`);
  }
  const failures = root.field('failures').list().map(readFailure);
  const timing = root.field('timing');
  return {
    file,
    outcome: {
      plan: readPlan(root.field('plan')),
      ending: root.field('ending').word(['complete', 'bail', 'interrupted']),
      catalogue: root.field('properties').list().map(readEntry),
      problems: root
        .field('problems')
        .list()
        .map((problem) => problem.text()),
      legs: root
        .field('scenarios')
        .list()
        .map((scenario) => readLeg(scenario, failures)),
    },
    timing: {
      seconds: timing.field('seconds').decimal(),
      jobs: timing.field('jobs').count(),
      node: timing.field('node').text(),
      busy: readBusy(timing.field('busy'), root.field('scenarios')),
    },
  };
}

/** Joins the shards of one sweep, in any order. Throws ShapeError when they are not all of them, each once. */
export function mergeReports(reports: readonly ReadReport[]): {
  readonly outcome: Outcome;
  readonly timing: Timing;
} {
  const [first, ...others] = reports.toSorted((one, other) => placeOf(one) - placeOf(other));
  if (first === undefined) throw new ShapeError('no report to merge');
  for (const other of others) checkSamePlan(first, other);
  checkAllShards(first.outcome.plan.shard, reports);
  const whole = { ...first.outcome, plan: { ...first.outcome.plan, shard: undefined } };
  return {
    outcome: others.reduce<Outcome>((sum, { outcome }) => joinOutcomes(sum, outcome), whole),
    timing: {
      seconds: reports.reduce((sum, { timing }) => Math.max(sum, timing.seconds), 0),
      jobs: reports.reduce((sum, { timing }) => sum + timing.jobs, 0),
      node: [...new Set(reports.map(({ timing }) => timing.node))].sort().join(', '),
      busy: reports.map(({ timing }) => timing.busy).reduce(addBusy),
    },
  };
}

function addBusy(one: Timing['busy'], other: Timing['busy']): Timing['busy'] {
  const names = Object.keys({ ...one, ...other });
  return Object.fromEntries(names.map((name) => [name, (one[name] ?? 0) + (other[name] ?? 0)]));
}

function joinOutcomes(one: Outcome, other: Outcome): Outcome {
  const endings = [one.ending, other.ending];
  const ending = endings.includes('interrupted') ? 'interrupted' : undefined;
  const catalogue = new Map(
    [...one.catalogue, ...other.catalogue].map((each) => [each.name, each]),
  );
  return {
    plan: one.plan,
    ending: ending ?? (endings.includes('bail') ? 'bail' : 'complete'),
    catalogue: [...catalogue.values()],
    problems: [...new Set([...one.problems, ...other.problems])],
    legs: one.legs.map((leg, index) => {
      const more = other.legs[index];
      return more === undefined ? leg : mergeLegs(leg, more);
    }),
  };
}

function checkSamePlan(first: ReadReport, other: ReadReport): void {
  const [one, two] = [first, other].map(({ outcome }) =>
    JSON.stringify({
      ...outcome.plan,
      shard: outcome.plan.shard?.count,
      legs: outcome.legs.map(({ scenario }) => scenario),
    }),
  );
  if (one === two) return;
  throw new ShapeError(`${other.file}: not of the same sweep as ${first.file}`);
}

const MISSING_NAMED = 10;

function checkAllShards(shard: Shard | undefined, reports: readonly ReadReport[]): void {
  const count = shard?.count ?? 1;
  const given = reports.map(placeOf);
  const twice = given.find((index, place) => given.indexOf(index) !== place);
  if (twice !== undefined) throw new ShapeError(`shard ${twice} of ${count} is given twice`);
  if (given.length === count) return;
  const named: number[] = [];
  for (let index = 1; index <= count && named.length < MISSING_NAMED; index += 1) {
    if (!given.includes(index)) named.push(index);
  }
  const missing = count - given.length;
  throw new ShapeError(`of ${count} shards, ${missing} are missing: ${named.join(', ')}`);
}

function placeOf({ outcome }: ReadReport): number {
  return outcome.plan.shard?.index ?? 1;
}

function readPlan(reader: JsonReader): Plan {
  const scenario = reader.field('scenario');
  const shard = reader.field('shard');
  return {
    scenario: scenario.isNull ? undefined : scenario.text(),
    all: reader.field('all').flag(),
    firstSeed: readSeed(reader.field('firstSeed')),
    seeds: reader.field('seeds').count(),
    steps: reader.field('steps').count(),
    shard: shard.isNull ? undefined : readShard(shard),
  };
}

function readShard(reader: JsonReader): Shard {
  const [, left, right] = /^(\d{1,9})\/(\d{1,9})$/.exec(reader.text()) ?? [];
  const [index, count] = [Number(left), Number(right)];
  if (index >= 1 && index <= count) return { index, count };
  throw reader.wrong('a shard');
}

function readLeg(reader: JsonReader, failures: readonly Failure[]): LegResult {
  const scenario = reader.field('name').text();
  const kind = reader.field('kind').word(LEG_KINDS);
  const counted = COUNTED[kind];
  return {
    scenario,
    kind,
    seeds: reader.field('seeds').count(),
    steps: reader.field('steps').count(),
    simulated: reader.field('simulated').count(),
    sum: readSum(reader.field('digest')),
    actions: reader.field('actions').counts(counted.actions),
    drops: reader.field('drops').counts(counted.drops),
    closes: reader.field('closes').counts(counted.closes),
    reaches: reader
      .field('reaches')
      .list()
      .map((name) => name.text()),
    properties: reader.field('properties').list().map(readCounts),
    failed: reader.field('failed').count(),
    failures: failures.filter((failure) => failure.scenario === scenario),
    repeated: reader.field('repeated').count(),
    fresh: reader.field('fresh').count(),
  };
}

/** Of the scenarios that the report is about. */
function readBusy(reader: JsonReader, scenarios: JsonReader): Timing['busy'] {
  const names = scenarios.list().map((scenario) => scenario.field('name').text());
  return Object.fromEntries(names.map((name) => [name, reader.field(name).decimal()]));
}

function readCounts(reader: JsonReader): PropertyCounts {
  const first = reader.field('first');
  return {
    ...readEntry(reader),
    evaluations: reader.field('evaluations').count(),
    hits: reader.field('hits').count(),
    seeds: reader.field('seeds').count(),
    first: first.isNull
      ? undefined
      : { seed: readSeed(first.field('seed')), step: first.field('step').count() },
  };
}

function readEntry(reader: JsonReader): Pick<PropertyCounts, 'kind' | 'name'> {
  return { kind: reader.field('kind').word(PROPERTY_KINDS), name: reader.field('name').text() };
}

function readFailure(reader: JsonReader): Failure {
  return {
    property: reader.field('property').text(),
    scenario: reader.field('scenario').text(),
    seed: readSeed(reader.field('seed')),
    step: reader.field('step').count(),
    detail: reader.field('detail').text(),
    actions: reader
      .field('actions')
      .list()
      .map((action) => action.text()),
  };
}

function readSeed(reader: JsonReader): Seed {
  const parsed = parseSeed(reader.text());
  if (!parsed.ok || parsed.seed === undefined) throw reader.wrong('a seed');
  return parsed.seed;
}

function readSum(reader: JsonReader): bigint {
  const text = reader.text();
  if (!/^[0-9a-f]{16}$/.test(text)) throw reader.wrong('sixteen hexadecimal digits');
  return BigInt(`0x${text}`);
}

function parseJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ShapeError(`${file}: not JSON`);
  }
}
