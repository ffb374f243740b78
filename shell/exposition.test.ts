/** The text: every metric once, labels escaped, figures of one look, and nobody waits behind somebody else's scrape. */
import { expect, test } from 'vitest';
import { Exposition } from './exposition.ts';
import { newCounters } from '../core/index.ts';
import { FAMILIES } from './metrics/catalogue.ts';
import { durationsOf } from './metrics/histogram.ts';
import { add, type Readings } from './metrics/readings.ts';

test('every metric of the catalogue is there once, with its help and kind', async () => {
  const text = await new Exposition(async () => new Map()).text();
  for (const { name, kind, help } of FAMILIES) {
    expect(text.split(`# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n`), name).toHaveLength(2);
  }
});

test('a histogram has its buckets, each with those before it, its sum and its count', async () => {
  const counters = { ...newCounters(), lasted1ms: 2, lasted100ms: 3, lastedLonger: 1 };
  const histogram = durationsOf({ ...counters, lastedMicroseconds: 4_000_250_000 });
  const readings: Readings = new Map([
    ['sozu_udp_flow_duration_seconds', [{ labels: { listener: 'a"b' }, value: 6, histogram }]],
  ]);
  const text = await new Exposition(async () => readings).text();
  const lines = text.split('\n').filter((line) => line.startsWith('sozu_udp_flow_duration'));
  expect(lines).toHaveLength(14);
  expect(lines).toEqual(
    expect.arrayContaining([
      'sozu_udp_flow_duration_seconds_bucket{listener="a\\"b",le="0.001"} 2',
      'sozu_udp_flow_duration_seconds_bucket{listener="a\\"b",le="0.025"} 2',
      'sozu_udp_flow_duration_seconds_bucket{listener="a\\"b",le="0.1"} 5',
      'sozu_udp_flow_duration_seconds_bucket{listener="a\\"b",le="3600"} 5',
      'sozu_udp_flow_duration_seconds_bucket{listener="a\\"b",le="+Inf"} 6',
      'sozu_udp_flow_duration_seconds_sum{listener="a\\"b"} 4000.25',
      'sozu_udp_flow_duration_seconds_count{listener="a\\"b"} 6',
    ]),
  );
});

test('names are distinct, and counters and only counters end in _total', () => {
  expect(new Set(FAMILIES.map(({ name }) => name)).size).toBe(FAMILIES.length);
  for (const { name, kind, help } of FAMILIES) {
    expect(name).toMatch(/^(?:sozu_udp|process|nodejs)(?:_[a-z0-9]+)+$/);
    expect(name.endsWith('_total'), name).toBe(kind === 'counter');
    expect(help, name).toMatch(/^\S.*[.]$/);
  }
});

test('labels may be anything', async () => {
  const cluster = 'a"b\\c\nd';
  const readings: Readings = new Map();
  add(readings, 'sozu_udp_backend_health_total', 3, { cluster });
  const text = await new Exposition(async () => readings).text();
  expect(text).toContain('\nsozu_udp_backend_health_total{cluster="a\\"b\\\\c\\nd"} 3\n');
});

test('a second text shows nothing of the first, and counters may be what they were', async () => {
  const looks: Readings[] = [new Map(), new Map()];
  add(looks[0]!, 'sozu_udp_active_flows', 5, { listener: '10.0.0.9:53' });
  add(looks[0]!, 'sozu_udp_flows_created_total', 5, { listener: 'here' });
  add(looks[1]!, 'sozu_udp_flows_created_total', 5, { listener: 'here' });
  const exposition = new Exposition(async () => looks.shift() ?? new Map());
  expect(await exposition.text()).toContain('sozu_udp_active_flows{listener="10.0.0.9:53"} 5\n');
  const second = await exposition.text();
  expect(second).not.toContain('10.0.0.9:53');
  expect(second).toContain('sozu_udp_flows_created_total{listener="here"} 5\n');
});

test('whoever asks while a text is written gets that text', async () => {
  let looks = 0;
  const exposition = new Exposition(async () => {
    looks += 1;
    return new Map();
  });
  const texts = await Promise.all(Array.from({ length: 50 }, () => exposition.text()));
  expect(looks).toBe(1);
  expect(new Set(texts).size).toBe(1);
  await exposition.text();
  expect(looks).toBe(2);
});

test('a metric that is not in the catalogue is a mistake and not a silence', async () => {
  const readings: Readings = new Map();
  add(readings, 'sozu_udp_floes_total', 1);
  await expect(new Exposition(async () => readings).text()).rejects.toThrow('sozu_udp_floes_total');
});
