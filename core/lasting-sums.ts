/**
 * Sums by name that outlive what was counted under it: a listener or a cluster that goes and comes back counts on from where it
 * was, so that a counter which somebody reads from outside only grows. The number of names is bounded, because whoever may
 * change a configuration could make up new ones for ever: those beyond the bound are one sum together, for good.
 */

/** Where names beyond the bound are counted. */
export const OTHER_NAMES = 'other';

/** Names of one kind that have a sum of their own. */
export const NAMES_MAX = 256;

export class LastingSums<Counts> {
  private readonly past = new Map<string, Counts>();
  private readonly fresh: () => Counts;
  private readonly add: (sum: Counts, counts: Readonly<Counts>) => void;
  private readonly max: number;
  private folded = 0;

  constructor(
    fresh: () => Counts,
    add: (sum: Counts, counts: Readonly<Counts>) => void,
    max: number = NAMES_MAX,
  ) {
    this.fresh = fresh;
    this.add = add;
    this.max = max;
  }

  /** `name` is counted from now on: under itself, or with the others. To be called before anything is counted there. */
  begin(name: string): void {
    if (this.past.has(name)) return;
    if (this.past.size < this.max) this.past.set(name, this.fresh());
    else this.folded += 1;
  }

  /** What one counted that is no more. */
  keep(name: string, counts: Readonly<Counts>): void {
    this.add(this.sumIn(this.past, name), counts);
  }

  /** How often a name found no sum of its own. */
  get beyondBound(): number {
    return this.folded;
  }

  /** Every sum: what is past, and what those count that are still there. */
  including(
    live: Iterable<readonly [string, Readonly<Counts>]>,
  ): ReadonlyMap<string, Readonly<Counts>> {
    const sums = new Map<string, Counts>();
    for (const [name, counts] of this.past) this.add(this.sumIn(sums, name), counts);
    for (const [name, counts] of live) this.add(this.sumIn(sums, name), counts);
    return sums;
  }

  private sumIn(sums: Map<string, Counts>, name: string): Counts {
    const label = this.past.has(name) ? name : OTHER_NAMES;
    const known = sums.get(label);
    if (known !== undefined) return known;
    const sum = this.fresh();
    sums.set(label, sum);
    return sum;
  }
}
