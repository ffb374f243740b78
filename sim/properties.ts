/**
 * The property catalogue: what must always hold and what must happen sometimes. Properties are declared once, at the top of a
 * module, with a literal name, so that a scan of the sources finds all of them and one that never ran is reported as missed.
 * A violation is recorded and the run goes on; whoever runs it turns violations into a failure. Counts belong to an
 * `Observer`, never to a declaration: nothing is shared between runs.
 */
import { assert } from '../core/assert.ts';
import type { Seed } from './seed.ts';
import { compareSeeds } from './seed.ts';

export type PropertyKind =
  | 'always'
  | 'sometimes'
  | 'reachable'
  | 'unreachable'
  | 'alwaysAtMost'
  | 'alwaysAtLeast'
  | 'sometimesAtMost'
  | 'sometimesAtLeast';

/** A declared property. `id` is its place in an observer's counters, of no meaning outside the process. */
export interface Property<Kind extends PropertyKind = PropertyKind> {
  readonly id: number;
  readonly kind: Kind;
  readonly name: string;
}

/** A property of a condition: given to `Observer.check`. */
export type ConditionProperty = Property<'always' | 'sometimes'>;

/** A property of a place in the code: given to `Observer.reach`. */
export type PlaceProperty = Property<'reachable' | 'unreachable'>;

/** A property of a number against a bound: given to `Observer.measure`. */
export type NumericProperty = Property<
  'alwaysAtMost' | 'alwaysAtLeast' | 'sometimesAtMost' | 'sometimesAtLeast'
>;

/** Holds whenever it is checked, and is checked. */
export function always(name: string): Property<'always'> {
  return declare('always', name);
}

/** Holds at least once over all seeds. */
export function sometimes(name: string): Property<'sometimes'> {
  return declare('sometimes', name);
}

/** Is reached at least once over all seeds. */
export function reachable(name: string): Property<'reachable'> {
  return declare('reachable', name);
}

/** Is never reached. */
export function unreachable(name: string): Property<'unreachable'> {
  return declare('unreachable', name);
}

/** The value stays at or below the bound whenever it is measured, and is measured. */
export function alwaysAtMost(name: string): Property<'alwaysAtMost'> {
  return declare('alwaysAtMost', name);
}

/** The value stays at or above the bound whenever it is measured, and is measured. */
export function alwaysAtLeast(name: string): Property<'alwaysAtLeast'> {
  return declare('alwaysAtLeast', name);
}

/** The value is at or below the bound at least once over all seeds. */
export function sometimesAtMost(name: string): Property<'sometimesAtMost'> {
  return declare('sometimesAtMost', name);
}

/** The value is at or above the bound at least once over all seeds. */
export function sometimesAtLeast(name: string): Property<'sometimesAtLeast'> {
  return declare('sometimesAtLeast', name);
}

/** All properties that the loaded modules declare, by their ids. */
export function declaredProperties(): readonly Property[] {
  return declared;
}

/** Where something was seen. */
export interface Sighting {
  readonly seed: Seed;
  readonly step: number;
}

/** The first time in a run that a property was violated. `detail` carries the numbers of a numeric form. */
export interface Violation extends Sighting {
  readonly kind: PropertyKind;
  readonly name: string;
  readonly detail: string;
}

/** What was seen of one property. Plain data: reports of several workers merge into one. */
export interface PropertyCounts {
  readonly kind: PropertyKind;
  readonly name: string;
  /** How often it was looked at. */
  readonly evaluations: number;
  /** How often it held; for places, how often they were reached. */
  readonly hits: number;
  /** In how many seeds it held or was reached at least once. */
  readonly seeds: number;
  /** The lowest seed in which it held or was reached, with the first step there. */
  readonly first: Sighting | undefined;
}

/** Watches the properties over the runs of one worker, one run after the other. */
export class Observer {
  /** The step now under way: set by the run. */
  step = 0;
  #seed: Seed = { high: 0, low: 0 };
  readonly #tallies: Tally[] = declared.map(() => newTally());
  #violations: Violation[] = [];
  readonly #violated = new Set<number>();

  /** Begins a run: forgets the violations, keeps the counts. */
  beginRun(seed: Seed): void {
    this.#seed = seed;
    this.step = 0;
    this.#violations = [];
    this.#violated.clear();
    for (const tally of this.#tallies) tally.hitThisRun = false;
  }

  /** The violations of this run, each property's first only, in the order they happened. */
  get violations(): readonly Violation[] {
    return this.#violations;
  }

  /** Looks at a condition, and returns it: false on an `always` is a violation. */
  check(property: ConditionProperty, condition: boolean): boolean {
    this.#count(property, condition);
    if (!condition && property.kind === 'always') this.#violate(property, 'did not hold');
    return condition;
  }

  /** Notes that a place was reached: a violation when it is unreachable. */
  reach(property: PlaceProperty): void {
    this.#count(property, true);
    if (property.kind === 'unreachable') this.#violate(property, 'was reached');
  }

  /** Looks at a value against a bound, and returns whether it keeps it. */
  measure(property: NumericProperty, value: number, bound: number): boolean {
    const atMost = property.kind === 'alwaysAtMost' || property.kind === 'sometimesAtMost';
    const holds = atMost ? value <= bound : value >= bound;
    this.#count(property, holds);
    if (!holds && (property.kind === 'alwaysAtMost' || property.kind === 'alwaysAtLeast')) {
      this.#violate(property, `value ${value}, bound ${bound}`);
    }
    return holds;
  }

  /** What was seen of every declared property, in the order of their names. */
  counts(): PropertyCounts[] {
    return declared
      .map(({ id, kind, name }) => {
        const { evaluations, hits, seeds, first } = this.#tally(id);
        return { kind, name, evaluations, hits, seeds, first };
      })
      .sort(byName);
  }

  #count(property: Property, hit: boolean): void {
    const tally = this.#tally(property.id);
    tally.evaluations++;
    if (!hit) return;
    tally.hits++;
    if (tally.hitThisRun) return;
    tally.hitThisRun = true;
    tally.seeds++;
    tally.first = earlier(tally.first, { seed: this.#seed, step: this.step });
  }

  /** Modules loaded after the observer was made have declared more properties. */
  #tally(id: number): Tally {
    return (this.#tallies[id] ??= newTally());
  }

  #violate({ id, kind, name }: Property, detail: string): void {
    if (this.#violated.has(id)) return;
    this.#violated.add(id);
    this.#violations.push({ kind, name, detail, seed: this.#seed, step: this.step });
  }
}

/** Joins counts over disjoint sets of seeds. The order of the arguments does not matter. */
export function mergeCounts(
  left: readonly PropertyCounts[],
  right: readonly PropertyCounts[],
): PropertyCounts[] {
  const merged = new Map(left.map((counts) => [counts.name, counts]));
  for (const counts of right) {
    const other = merged.get(counts.name);
    merged.set(counts.name, other === undefined ? counts : sum(other, counts));
  }
  return [...merged.values()].sort(byName);
}

/** A property of the catalogue that the sources declare: what the scan finds. */
export interface CatalogueEntry {
  readonly kind: PropertyKind;
  readonly name: string;
}

/**
 * The properties that were missed: never looked at, or never seen when they should be sometimes. `unreachable` is never
 * missed. The catalogue comes from the sources, so one whose module was not even loaded is missed too.
 */
export function missedProperties(
  catalogue: readonly CatalogueEntry[],
  counts: readonly PropertyCounts[],
): CatalogueEntry[] {
  const seen = new Set(counts.filter(satisfied).map(({ name }) => name));
  return catalogue.filter(({ kind, name }) => kind !== 'unreachable' && !seen.has(name));
}

interface Tally {
  evaluations: number;
  hits: number;
  seeds: number;
  first: Sighting | undefined;
  hitThisRun: boolean;
}

const declared: Property[] = [];

function declare<Kind extends PropertyKind>(kind: Kind, name: string): Property<Kind> {
  assert(!declared.some((other) => other.name === name), `property declared twice: ${name}`);
  const property = { id: declared.length, kind, name };
  declared.push(property);
  return property;
}

function newTally(): Tally {
  return { evaluations: 0, hits: 0, seeds: 0, first: undefined, hitThisRun: false };
}

function satisfied({ kind, evaluations, hits }: PropertyCounts): boolean {
  return kind.startsWith('always') ? evaluations > 0 : hits > 0;
}

function sum(left: PropertyCounts, right: PropertyCounts): PropertyCounts {
  return {
    kind: left.kind,
    name: left.name,
    evaluations: left.evaluations + right.evaluations,
    hits: left.hits + right.hits,
    seeds: left.seeds + right.seeds,
    first: earlier(left.first, right.first),
  };
}

function earlier(left: Sighting | undefined, right: Sighting | undefined): Sighting | undefined {
  if (left === undefined || right === undefined) return left ?? right;
  return compareSeeds(left.seed, right.seed) <= 0 ? left : right;
}

/** By code units: the same order everywhere. */
function byName(left: CatalogueEntry, right: CatalogueEntry): number {
  if (left.name === right.name) return 0;
  return left.name < right.name ? -1 : 1;
}
