/** What is generated for those who watch names only metrics that exist, with labels that they have. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FAMILIES } from '../../shell/metrics/catalogue.ts';
import { ALERTS, metric } from './alerts.ts';
import { dashboardQueries } from './dashboard.ts';
import { metricsDocument } from './metrics.ts';

const LABELS_OF_SCRAPES = ['instance', 'job'];

test.each(['examples/grafana-dashboard.json', 'examples/alerts.yml', 'doc/METRICS.md'])(
  '%s names only metrics that exist',
  (path) => {
    const names = namesIn(readFileSync(join(import.meta.dirname, '../..', path), 'utf8'));
    const known = new Set(FAMILIES.map(({ name }) => name));
    expect(names.length).toBeGreaterThan(5);
    expect(names.filter((name) => !known.has(name))).toEqual([]);
  },
);

test.each([...dashboardQueries(), ...ALERTS.map(({ expression }) => expression)])(
  'the labels of %s are those of its metrics',
  (query) => {
    const known = namesIn(query).flatMap((name) => {
      return [...(FAMILIES.find((family) => family.name === name)?.labels ?? [])];
    });
    const matched = [...query.matchAll(/(\w+)(?:=~|!~|!=|=)"/g)].map(([, label]) => label);
    const grouped = [...query.matchAll(/by \(([^)]+)\)/g)].flatMap(([, by = '']) => by.split(', '));
    for (const label of [...matched, ...grouped]) {
      expect([...LABELS_OF_SCRAPES, ...known]).toContain(label);
    }
  },
);

test('each alert has a name of its own, and doc/METRICS.md says what to do about it', () => {
  expect(new Set(ALERTS.map(({ name }) => name)).size).toBe(ALERTS.length);
  const document = readFileSync(join(import.meta.dirname, '../../doc/METRICS.md'), 'utf8');
  for (const { name, action } of ALERTS) {
    expect(document).toMatch(new RegExp(`\\| \`${name}\` .*\\|`));
    expect(document).toContain(action);
  }
});

test('a metric that is not there is a mistake, and so is a document without its markers', () => {
  expect(() => metric('sozu_udp_floes_total')).toThrow('no metric is called sozu_udp_floes_total');
  expect(() => metricsDocument('# Metrics\n')).toThrow('missing marker: metrics');
});

function namesIn(text: string): readonly string[] {
  return [...text.matchAll(/\b(?:sozu_udp|process|nodejs)_\w+/g)].map(([name]) => name);
}
