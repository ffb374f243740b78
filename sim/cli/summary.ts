/** The report for people: failures first, then what was done, what was seen and what was not. */
import { Chalk, type ChalkInstance } from 'chalk';
import type { FailureRow, PropertyRow, Report, ScenarioRow } from './report.ts';
import { COUNTED } from './result.ts';

export interface SummaryOptions {
  readonly colour: boolean;
  /** Every property and every failure that was kept. */
  readonly verbose: boolean;
}

/** More of what a small sweep missed, and need not see, are only counted unless verbose: they would hide the rest. */
const MISSED_TOLD = 20;

/** Failures told in full unless verbose: the first ones are the ones to look at. */
const FAILURES_TOLD = 5;

export function summarize(report: Report, { colour, verbose }: SummaryOptions): string {
  const chalk = new Chalk({ level: colour ? 1 : 0 });
  return [
    ...failureLines(report, verbose, chalk),
    ...report.problems.map((problem) => chalk.red(`catalogue: ${problem}`)),
    headline(report, chalk),
    '',
    ...table(report.scenarios.filter(({ kind }) => kind === 'core')),
    ...worldTable(report),
    ...propertyLines(report, verbose, chalk),
    ...determinismLines(report),
    `digest ${chalk.bold(report.digest)}`,
    '',
  ].join('\n');
}

function failureLines(report: Report, verbose: boolean, chalk: ChalkInstance): string[] {
  const told = verbose ? report.failures : report.failures.slice(0, FAILURES_TOLD);
  const failed = report.scenarios.reduce((sum, scenario) => sum + scenario.failed, 0);
  const worlds = new Set(
    report.scenarios.filter(({ kind }) => kind === 'world').map(({ name }) => name),
  );
  const lines = told.flatMap((failure) =>
    failureText(failure, worlds.has(failure.scenario) ? 'action' : 'step', chalk),
  );
  const rest = report.failures.slice(told.length);
  if (rest.length === 0) return lines;
  const names = rest.slice(0, 20).map(({ scenario, seed }) => `${scenario} ${seed}`);
  const more = rest.length > names.length ? ', …' : '';
  return [...lines, `${failed} seeds failed; further ones: ${names.join(', ')}${more}`, ''];
}

function failureText(failure: FailureRow, unit: 'action' | 'step', chalk: ChalkInstance): string[] {
  const { property, scenario, seed, step, detail, actions, replay } = failure;
  return [
    chalk.red.bold(`FAILED: ${property}`),
    `  scenario ${scenario}, seed ${seed}, ${unit} ${step}`,
    `  ${detail.replaceAll('\n', '\n  ')}`,
    ...(actions.length === 0 ? [] : ['  last actions:']),
    ...actions.map((action) => `    ${action}`),
    `  replay: ${chalk.cyan(replay)}`,
    '',
  ];
}

function headline(report: Report, chalk: ChalkInstance): string {
  const { seeds, steps, verdict, plan, timing } = report;
  const paint = { green: chalk.green, failed: chalk.red, interrupted: chalk.yellow }[verdict];
  const part = plan.shard === null ? '' : `, shard ${plan.shard}`;
  const ended = report.ending === 'bail' ? ', stopped at the first failure' : '';
  const { seconds, jobs } = timing;
  const speed =
    seconds === 0
      ? ''
      : `, ${thousands(seeds / seconds)} seeds/s, ${thousands(steps / seconds)} steps/s`;
  return (
    `${chalk.bold(paint(verdict))}: ${counted(seeds, 'seed')}, ${counted(steps, 'step')}${part}${ended} ` +
    `in ${seconds.toFixed(1)} s with ${counted(jobs, 'job')}${speed}`
  );
}

type Row = readonly [string, (scenario: ScenarioRow) => number];

/** Scenarios side by side. */
function table(scenarios: readonly ScenarioRow[]): string[] {
  if (scenarios.length === 0) return [];
  const { actions, drops, closes } = COUNTED.core;
  const sections: readonly (readonly [string, readonly Row[]])[] = [
    [
      'run',
      [
        ['seeds', ({ seeds }) => seeds],
        ['steps', ({ steps }) => steps],
      ],
    ],
    ['actions', actions.map((kind) => [kind, (one) => one.actions[kind] ?? 0])],
    ['drops', drops.map((reason) => [reason, (one) => one.drops[reason] ?? 0])],
    ['closes', closes.map((reason) => [reason, (one) => one.closes[reason] ?? 0])],
  ];
  const head = line(
    '',
    scenarios.map(({ name }) => name),
  );
  return [
    head,
    ...sections.flatMap(([title, rows]) => [
      title,
      ...rows.map(([name, of]) =>
        line(
          `  ${name}`,
          scenarios.map((one) => thousands(of(one))),
        ),
      ),
    ]),
    '',
  ];
}

/** Worlds are many: a line each. What a second of a core got through, and how much faster than life it was. */
function worldTable({ scenarios, timing }: Report): string[] {
  const worlds = scenarios.filter(({ kind }) => kind === 'world');
  if (worlds.length === 0) return [];
  const rows = worlds.map(({ name, seeds, failed, actions, steps, simulated }) => {
    const busy = timing.busy[name] ?? 0;
    const each = (amount: number): string => (busy === 0 ? '-' : thousands(amount / busy));
    const acted = Object.values(actions).reduce((sum, count) => sum + count, 0);
    const counts = [seeds, failed, acted, steps].map(thousands);
    return worldLine(name, [...counts, each(steps), `${each(simulated / 1_000_000)} x`]);
  });
  const head = ['seeds', 'failed', 'actions', 'events', 'events/s/core', 'real time'];
  return [worldLine('', head), ...rows, ''];
}

function worldLine(name: string, cells: readonly string[]): string {
  return line(name, cells, WORLD_NAME);
}

/** As long as the longest name of a scenario, and a little more. */
const WORLD_NAME = 22;

function line(name: string, cells: readonly string[], room = 20): string {
  return name.padEnd(room) + cells.map((cell) => cell.padStart(14)).join('');
}

function propertyLines(report: Report, verbose: boolean, chalk: ChalkInstance): string[] {
  const by = (state: PropertyRow['state']): PropertyRow[] =>
    report.properties.filter((property) => property.state === state);
  const missed = by('missed');
  const told = verbose
    ? by('ok')
    : by('ok').filter(({ kind }) => kind.startsWith('sometimes') || kind === 'reachable');
  const paint = report.judgesMissed ? chalk.red : chalk.yellow;
  return [
    `properties: ${by('ok').length} hit, ${missed.length} missed, ${by('violated').length} violated`,
    ...told.map((property) => chalk.dim(`  ${property.name}: ${sighting(property)}`)),
    ...by('violated').map(({ name }) => chalk.red(`  violated: ${name}`)),
    ...missedLines(report, missed, verbose).map((text) => paint(`  ${text}`)),
    ...report.unreached.map(({ scenario, property }) => {
      return chalk.red(`  not reached by ${scenario}: ${property}`);
    }),
    ...(missed.length > 0 && !report.judgesMissed
      ? [
          '  (no failure: only a whole default sweep or --all, or a larger one, must see everything)',
        ]
      : []),
  ];
}

function missedLines({ judgesMissed }: Report, missed: PropertyRow[], verbose: boolean): string[] {
  if (!judgesMissed && !verbose && missed.length > MISSED_TOLD) {
    return [`missed: ${missed.length}, which --verbose names`];
  }
  return missed.map(({ name }) => `missed: ${name}`);
}

function sighting({ kind, seeds, first }: PropertyRow): string {
  if (first === null) return kind === 'unreachable' ? 'never, as it should be' : 'never held';
  return `in ${counted(seeds, 'seed')}, first ${first.scenario} ${first.seed} step ${first.step}`;
}

function determinismLines({ scenarios, seeds, failures }: Report): string[] {
  const repeated = scenarios.reduce((sum, one) => sum + one.repeated, 0);
  if (repeated === 0) return [];
  const fresh = scenarios.reduce((sum, one) => sum + one.fresh, 0);
  const share = `${thousands(repeated)} of ${thousands(seeds)} seeds repeated`;
  const result = failures.length === 0 ? ', all the same' : '';
  return [`determinism: ${share}, ${fresh} of them in a fresh process too${result}`];
}

function counted(count: number, unit: string): string {
  return `${thousands(count)} ${unit}${count === 1 ? '' : 's'}`;
}

/** 1234567 as 1,234,567, whatever the locale. */
export function thousands(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(?:\d{3})+$)/g, ',');
}
