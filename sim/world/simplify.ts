/**
 * Makes data plainer without knowing what it means: what may be missing goes, lists get shorter, flags go off, drawn times get
 * constant and numbers small, as long as what comes out still has its shape and still does what it is kept for. Greedy, and
 * without chance.
 */
import type { Check } from './shape.ts';

/** A place in data, from the outside. */
type Path = readonly (string | number)[];

/** The plainest value of this shape that `keeps`, and whether it is another one. `closely`: numbers as small as they get. */
export function simplify<T>(
  given: T,
  check: Check<T>,
  keeps: (value: T) => boolean,
  closely: boolean,
): { readonly value: T; readonly moved: boolean } {
  const found = { value: given, moved: false };
  const put = (path: Path, part: unknown): boolean => {
    const candidate = withPart(found.value, path, part);
    if (!check(candidate, { path: '', problems: [] }) || !keeps(candidate)) return false;
    Object.assign(found, { value: candidate, moved: true });
    return true;
  };
  visit(
    [],
    (path) => partAt(found.value, path),
    (path, part) => {
      const taken = plainer(part).some((one) => put(path, one));
      if (taken || !closely || typeof part !== 'number') return;
      bisect(part, (number) => put(path, number));
    },
  );
  return found;
}

/** As near to 0 as it may be, where 0 itself may not: by a few steps, which is near enough to be read. */
export function bisect(from: number, keeps: (number: number) => boolean): void {
  let [failing, holding] = [from, 0];
  for (let step = 0; step < BISECTIONS && failing - holding > 1; step += 1) {
    const middle = Math.trunc((failing + holding) / 2);
    if (keeps(middle)) failing = middle;
    else holding = middle;
  }
}

const BISECTIONS = 12;

/** Outer parts first: what is gone has no parts. Addresses are names, and have none. */
function visit(
  path: Path,
  at: (path: Path) => unknown,
  meet: (path: Path, part: unknown) => void,
): void {
  if (path.length > 0) meet(path, at(path));
  const part = at(path);
  if (typeof part !== 'object' || part === null || part instanceof Uint8Array) return;
  if ('family' in part) return;
  if (Array.isArray(part)) {
    // From the end, because items that went away move those behind them.
    for (let index = part.length - 1; index >= 0; index -= 1) visit([...path, index], at, meet);
    return;
  }
  for (const key of Object.keys(part)) visit([...path, key], at, meet);
}

/** What a part could be instead, the plainest first. */
function plainer(part: unknown): unknown[] {
  if (part === undefined) return [];
  if (typeof part === 'number') return part === 0 ? [] : [GONE, 0, ...(part === 1 ? [] : [1])];
  if (typeof part === 'boolean') return part ? [GONE, false] : [GONE];
  if (typeof part !== 'object' || part === null) return [GONE];
  if (Array.isArray(part)) return part.length === 0 ? [GONE] : [GONE, []];
  return [GONE, ...constants(part)];
}

/** Instead of a time that is drawn. */
function constants(part: object): unknown[] {
  if (!('kind' in part)) return [];
  if (part.kind === 'uniform' && 'low' in part) return [{ kind: 'constant', time: part.low }];
  if (part.kind === 'log-normal' && 'median' in part)
    return [{ kind: 'constant', time: part.median }];
  return [];
}

/** In place of a part that is taken out. */
const GONE = Symbol('gone');

function partAt(value: unknown, [step, ...rest]: Path): unknown {
  if (step === undefined) return value;
  if (typeof value !== 'object' || value === null) return undefined;
  const inner: unknown = Object.getOwnPropertyDescriptor(value, step)?.value;
  return partAt(inner, rest);
}

function withPart(value: unknown, [step, ...rest]: Path, part: unknown): unknown {
  if (step === undefined) return part;
  if (typeof value !== 'object' || value === null) return value;
  const inner = withPart(partAt(value, [step]), rest, part);
  if (Array.isArray(value) && typeof step === 'number') {
    return inner === GONE ? value.toSpliced(step, 1) : value.with(step, inner);
  }
  const entries = Object.entries(value).filter(([key]) => key !== step || inner !== GONE);
  return Object.fromEntries(
    entries.map(([key, old]: [string, unknown]) => [key, key === step ? inner : old]),
  );
}
