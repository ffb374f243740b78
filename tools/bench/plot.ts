/**
 * A plot of what round trips cost, as SVG: for each load, in a scale of its own, a bar for each program with its quartiles. Its
 * text has the colour that the reader's page asks for, light or dark.
 */
import type { Quartiles } from './statistics.ts';
import type { PairedResult } from './turns.ts';

export interface PlotOptions {
  readonly title: string;
  /** Whether a program is this project's own. */
  readonly isOwn: (name: string) => boolean;
}

interface Bar {
  readonly name: string;
  readonly spread: Quartiles;
}

interface Group {
  readonly name: string;
  readonly bars: readonly Bar[];
}

const WIDTH = 860;
const LABELS = 190;
const VALUES = 80;
const ROW = 20;
const HEAD = 30;
const TOP = 40;
const BAR = 12;

/** Pure: results in, the text of a file out. Results of one load are one group, in which each program is shown once. */
export function plotRoundTrips(results: readonly PairedResult[], options: PlotOptions): string {
  const groups = groupsOf(results);
  const parts: string[] = [];
  let y = TOP;
  for (const { name, bars } of groups) {
    y += HEAD;
    const longest = Math.max(1, ...bars.map(({ spread }) => spread.upper));
    const scale = (WIDTH - LABELS - VALUES) / longest;
    parts.push(text(0, y - 8, name, 'load'));
    for (const bar of bars) {
      parts.push(row(bar, y, scale, options.isOwn(bar.name)));
      y += ROW;
    }
  }
  const height = y + 10;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">
<title>${escape(options.title)}</title>
<style>
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 14px; font-weight: 600 }
.load { font-weight: 600 }
.end { text-anchor: end }
.own { fill: #0a7ea4 }
.other { fill: #8c959f }
path { stroke: #1f2328; stroke-width: 1.2; fill: none }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
path { stroke: #e6edf3 }
}
</style>
${text(0, 20, options.title, 'title')}
${parts.join('\n')}
</svg>
`;
}

function groupsOf(results: readonly PairedResult[]): Group[] {
  const names = [...new Set(results.map(({ name }) => name))];
  return names.map((name) => {
    const series = results.filter((one) => one.name === name).flatMap((one) => one.series);
    const first = new Map<string, Bar>();
    for (const bar of series) if (!first.has(bar.name)) first.set(bar.name, bar);
    return { name, bars: [...first.values()] };
  });
}

function row({ name, spread }: Bar, y: number, scale: number, isOwn: boolean): string {
  const { lower, median, upper } = spread;
  const [from, to] = [lower, upper].map((value) => round(LABELS + value * scale));
  const middle = y + BAR / 2;
  const width = round(median * scale);
  const whisker = `M${from} ${middle}H${to}M${from} ${y + 3}V${y + BAR - 3}M${to} ${y + 3}V${y + BAR - 3}`;
  return [
    text(LABELS - 8, y + BAR - 2, name, 'end'),
    `<rect class="${isOwn ? 'own' : 'other'}" x="${LABELS}" y="${y}" width="${width}" height="${BAR}"/>`,
    `<path d="${whisker}"/>`,
    text(Number(to) + 8, y + BAR - 2, `${Math.round(median)} ns`, 'value'),
  ].join('\n');
}

function text(x: number, y: number, words: string, kind: string): string {
  return `<text class="${kind}" x="${x}" y="${y}">${escape(words)}</text>`;
}

function escape(words: string): string {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
