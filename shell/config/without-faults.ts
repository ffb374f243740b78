/**
 * What is left of a table when the values that its faults are about are taken away: enough to be judged with the rest of the
 * file, so that one fault does not hide others. A configuration never comes of it: the faults are errors.
 */
import type { core, z } from 'zod';

/** The table read again without what `issues` name; undefined when it still cannot be read, for want of a key. */
export function withoutFaults<T>(
  schema: z.ZodType<T>,
  raw: unknown,
  issues: readonly core.$ZodIssue[],
): T | undefined {
  const rest: unknown = structuredClone(raw);
  for (const issue of issues) {
    if (issue.code !== 'unrecognized_keys') takeAway(rest, issue.path);
    else for (const key of issue.keys) takeAway(rest, [...issue.path, key]);
  }
  const result = schema.safeParse(withoutHoles(rest));
  return result.success ? result.data : undefined;
}

function takeAway(from: unknown, path: readonly PropertyKey[]): void {
  const parents = path.slice(0, -1);
  const last = path.at(-1);
  const parent = parents.reduce<unknown>((value, key) => memberOf(value, key), from);
  if (last !== undefined && typeof parent === 'object' && parent !== null) {
    Reflect.deleteProperty(parent, last);
  }
}

function memberOf(value: unknown, key: PropertyKey): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}

/** Items that were taken out of arrays leave holes, which are no items. */
function withoutHoles(value: unknown): unknown {
  if (Array.isArray(value)) return value.filter(() => true).map(withoutHoles);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutHoles(item)]));
}
