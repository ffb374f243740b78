/** The report as JUnit XML, which every CI can show: one testcase a property, and one a failing seed. */
import type { FailureRow, PropertyRow, Report, UnreachedRow } from './report.ts';

export function toJunit(report: Report): string {
  const cases = [
    ...report.properties.map((property) => propertyCase(property, report)),
    ...report.unreached.map(unreachedCase),
    ...report.failures.map(seedCase),
    ...report.problems.map(problemCase),
  ];
  const count = (what: string): number => cases.filter((one) => one.includes(what)).length;
  const seconds = report.timing.seconds.toFixed(3);
  const totals = `tests="${cases.length}" failures="${count('<failure')}" skipped="${count('<skipped')}"`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="simulation" ${totals} time="${seconds}">`,
    `  <testsuite name="simulation" ${totals} errors="0" time="${seconds}">`,
    `    <properties><property name="digest" value="${report.digest}"/></properties>`,
    ...cases,
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n');
}

function propertyCase(property: PropertyRow, report: Report): string {
  const { name, kind, state, seeds } = property;
  if (state === 'ok') return testcase(kind, name, '');
  if (state === 'missed' && !report.judgesMissed) {
    return testcase(kind, name, '<skipped message="not seen in a sweep of this size"/>');
  }
  const lowest = report.failures.find((failure) => failure.property === name);
  const message =
    lowest === undefined
      ? `missed in ${report.seeds} seeds, seen in ${seeds}`
      : `violated, first in ${lowest.scenario} ${lowest.seed}`;
  return testcase(kind, name, `<failure message="${escape(message)}"/>`);
}

function seedCase({ property, scenario, seed, step, detail, actions, replay }: FailureRow): string {
  const text = [detail, ...actions, replay].join('\n');
  const message = escape(`${property} (step ${step})`);
  const failure = `<failure message="${message}">${escape(text)}</failure>`;
  return testcase(`seed.${scenario}`, seed, failure);
}

function unreachedCase({ scenario, property }: UnreachedRow): string {
  return testcase(`reach.${scenario}`, property, '<failure message="not reached"/>');
}

function problemCase(problem: string): string {
  return testcase('catalogue', problem, `<failure message="${escape(problem)}"/>`);
}

function testcase(group: string, name: string, inside: string): string {
  const head = `    <testcase classname="simulation.${escape(group)}" name="${escape(name)}"`;
  return inside === '' ? `${head}/>` : `${head}>${inside}</testcase>`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\n': '&#10;',
};

/** XML 1.0 has no place for most control characters and for half surrogates, not even escaped. */
function escape(text: string): string {
  return (
    text
      // oxlint-disable-next-line no-control-regex -- these are what must not get into the file
      .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/gu, '\ufffd')
      .replace(/[&<>"\n]/g, (character) => ENTITIES[character] ?? '')
  );
}
