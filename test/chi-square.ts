/** Pearson's test, for distributions drawn from fixed seeds: such a test cannot flake, it passes for ever or fails for ever. */

/**
 * Whether counts are what the weights say, at the level of one in a thousand. Each expected count should be at least five.
 * The quantile is Wilson and Hilferty's approximation.
 */
export function chiSquareFits(counts: readonly number[], weights: readonly number[]): boolean {
  const total = sum(counts);
  const share = total / sum(weights);
  const statistic = sum(
    counts.map(
      (count, index) => (count - weights[index]! * share) ** 2 / (weights[index]! * share),
    ),
  );
  const freedom = counts.length - 1;
  const spread = 2 / (9 * freedom);
  return statistic <= freedom * (1 - spread + QUANTILE * Math.sqrt(spread)) ** 3;
}

/** Of the standard normal distribution, at 0.999. */
const QUANTILE = 3.0902;

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
