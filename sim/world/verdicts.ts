/** How oracles judge: by properties of the catalogue, with the detail of the first violation kept for whoever reads it. */
import type { NumericProperty, Observer, Property } from '../properties.ts';

/** Ends a run at once: what comes after a violation proves nothing. */
export class ViolationFound extends Error {
  override readonly name: string = 'ViolationFound';
}

export class Verdicts {
  /** What was seen, of the violation that ended the run. */
  detail: string | undefined;
  readonly #observer: Observer;
  readonly #only: ReadonlySet<string> | undefined;

  /** With `only`, violations of other properties are passed over. */
  constructor(observer: Observer, only?: ReadonlySet<string>) {
    this.#observer = observer;
    this.#only = only;
  }

  /** Throws ViolationFound when an `always` does not hold; `detail` is asked for only then. */
  check(
    property: Property<'always' | 'sometimes'>,
    condition: boolean,
    detail: () => string,
  ): void {
    if (this.#observer.check(property, condition) || property.kind === 'sometimes') return;
    this.#found(property, detail);
  }

  /** Throws ViolationFound when the value does not keep its bound. */
  measure(property: NumericProperty, value: number, bound: number, detail: () => string): void {
    if (this.#observer.measure(property, value, bound)) return;
    if (property.kind === 'alwaysAtMost' || property.kind === 'alwaysAtLeast')
      this.#found(property, () => `${value} against ${bound}: ${detail()}`);
  }

  /** Throws ViolationFound when the place is unreachable. */
  reach(property: Property<'reachable' | 'unreachable'>, detail: () => string = () => ''): void {
    this.#observer.reach(property);
    if (property.kind === 'unreachable') this.#found(property, detail);
  }

  /** Notes that something happens sometimes. */
  see(property: Property<'sometimes'>): void {
    this.#observer.check(property, true);
  }

  #found({ name }: Property, detail: () => string): void {
    if (this.#only !== undefined && !this.#only.has(name)) return;
    this.detail = detail();
    throw new ViolationFound(`${name}: ${this.detail}`);
  }
}
