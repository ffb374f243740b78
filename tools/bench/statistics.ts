/**
 * Medians with quartiles: what a bench may say about samples from a machine it does not have to
 * itself. Pure.
 */

export interface Quartiles {
  readonly lower: number;
  readonly median: number;
  readonly upper: number;
}

/**
 * The value below which `share` (0 to 1) of the samples lie, interpolated between neighbours.
 * Throws on no samples.
 */
export function quantile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const below = sorted[Math.floor(place)];
  const above = sorted[Math.ceil(place)];
  if (below === undefined || above === undefined) throw new RangeError('no samples');
  return below + (above - below) * (place - Math.floor(place));
}

export function median(samples: readonly number[]): number {
  return quantile(samples, 0.5);
}

export function quartiles(samples: readonly number[]): Quartiles {
  return {
    lower: quantile(samples, 0.25),
    median: quantile(samples, 0.5),
    upper: quantile(samples, 0.75),
  };
}

/**
 * `samples[i] / baseline[i]`: each pair was taken at nearly the same time, so what slowed both
 * cancels out.
 */
export function pairedRatios(samples: readonly number[], baseline: readonly number[]): number[] {
  if (samples.length !== baseline.length) throw new RangeError('pairs need two equal lists');
  return samples.map((sample, at) => sample / (baseline[at] ?? Number.NaN));
}
