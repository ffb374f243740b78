/**
 * The text that Prometheus scrapes. All figures are taken in one go and agree with each other; the text is then written one
 * metric after the other, with room for datagrams in between. Whoever asks meanwhile gets the same text.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Counter, Gauge, Registry } from 'prom-client';
import { FAMILIES, type Family } from './metrics/catalogue.ts';
import { histogramText } from './metrics/histogram.ts';
import type { Readings, Series } from './metrics/readings.ts';

export class Exposition {
  /** `text/plain` with the version of the format. */
  readonly contentType: string;
  private readonly registry = new Registry();
  private readonly metrics: readonly Shown[];
  private readonly take: () => Promise<Readings>;
  private writing: Promise<string> | undefined;

  /** `take` gives what is counted now; a series of an unknown metric is a mistake and thrown. */
  constructor(take: () => Promise<Readings>) {
    this.take = take;
    this.contentType = this.registry.contentType;
    this.metrics = FAMILIES.map((family) => show(family, this.registry));
  }

  text(): Promise<string> {
    this.writing ??= this.write().finally(() => {
      this.writing = undefined;
    });
    return this.writing;
  }

  private async write(): Promise<string> {
    const readings = await this.take();
    const parts: string[] = [];
    for (const { family, text } of this.metrics) {
      parts.push(await text(readings.get(family.name) ?? []));
      readings.delete(family.name);
      await nextTurn();
    }
    const [unknown] = readings.keys();
    if (unknown !== undefined) throw new Error(`no metric is called ${unknown}`);
    return `${parts.join('\n')}\n`;
  }
}

interface Shown {
  readonly family: Family;
  readonly text: (series: readonly Series[]) => string | Promise<string>;
}

/** A metric without a series shows its name and its help only, and so do those that have labels and nothing to tell. */
function show(family: Family, registry: Registry): Shown {
  const { name, help, kind } = family;
  if (kind === 'histogram') return { family, text: (series) => histogramText(family, series) };
  const options = { name, help, labelNames: [...family.labels], registers: [registry] };
  const told = (): Promise<string> => registry.getSingleMetricAsString(name);
  if (kind === 'counter') {
    const counter = new Counter(options);
    return {
      family,
      text: (series) => {
        counter.reset();
        for (const { labels, value } of series) counter.inc(labels, value);
        return told();
      },
    };
  }
  const gauge = new Gauge(options);
  return {
    family,
    text: (series) => {
      gauge.reset();
      for (const { labels, value } of series) gauge.set(labels, value);
      return told();
    },
  };
}
