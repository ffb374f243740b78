import { expect, test } from 'vitest';
import { plotRoundTrips } from './plot.ts';

const rest = { nanoseconds: [1], loadNanoseconds: 1, backendNanoseconds: 1, tripsPerSecond: 1 };
const counts = { trips: 1, lost: 0, ratio: 1, pairedRatio: { lower: 1, median: 1, upper: 1 } };

function result(name: string, medians: Readonly<Record<string, number>>) {
  const series = Object.entries(medians).map(([own, median]) => {
    const spread = { lower: median * 0.9, median, upper: median * 1.1 };
    return { name: own, spread, ...rest, ...counts };
  });
  return { name, sliceMs: 500, series };
}

const options = { title: 'What it costs', isOwn: (name: string) => name === 'own' };

function count(svg: string, pattern: RegExp): number {
  return svg.match(pattern)?.length ?? 0;
}

test('there is a bar for each program under each load, the own ones apart', () => {
  const svg = plotRoundTrips(
    [result('16 x 16', { own: 5_000, nginx: 9_000 }), result('1000 x 1', { own: 7_000 })],
    options,
  );
  expect(count(svg, /class="own"/g)).toBe(2);
  expect(count(svg, /class="other"/g)).toBe(1);
  expect(svg).toContain('>16 x 16</text>');
  expect(svg).toContain('>9000 ns</text>');
});

test('bars are as long as their medians', () => {
  const svg = plotRoundTrips([result('x', { own: 2_000, nginx: 4_000 })], options);
  const widths = [...svg.matchAll(/<rect [^>]*width="([\d.]+)"/g)].map(([, width]) =>
    Number(width),
  );
  expect(widths[1]).toBeCloseTo((widths[0] ?? 0) * 2, 0);
});

test('a program that met several others under one load is shown once', () => {
  const svg = plotRoundTrips(
    [result('10000 live', { floor: 5, own: 6 }), result('10000 live', { nginx: 9, own: 7 })],
    options,
  );
  expect(count(svg, /class="own"/g)).toBe(1);
  expect(count(svg, /<rect/g)).toBe(3);
  expect(count(svg, />10000 live</g)).toBe(1);
});

test('names are no markup, and the text is for light and for dark pages', () => {
  const svg = plotRoundTrips([result('a < b', { own: 1 })], options);
  expect(svg).toContain('a &lt; b');
  expect(svg).toContain('prefers-color-scheme: dark');
});
