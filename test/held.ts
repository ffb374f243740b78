/** What an object holds, by walking everything that can be reached from it: for tests of what must not grow. */

export interface Held {
  /** Of all array buffers. */
  readonly bytes: number;
  /** Elements of arrays, maps and sets. */
  readonly entries: number;
}

/** Functions and their closures are not looked into. */
export function heldBy(root: object): Held {
  const seen = new Set<unknown>();
  const ahead: unknown[] = [root];
  let bytes = 0;
  let entries = 0;
  while (ahead.length > 0) {
    const one = ahead.pop();
    if (typeof one !== 'object' || one === null || seen.has(one)) continue;
    seen.add(one);
    if (ArrayBuffer.isView(one)) {
      if (!seen.has(one.buffer)) bytes += one.buffer.byteLength;
      seen.add(one.buffer);
      continue;
    }
    const inside = contentOf(one);
    if (Array.isArray(one) || one instanceof Map || one instanceof Set) entries += inside.length;
    // One by one: a spread of a long array overflows the stack.
    for (const next of inside) ahead.push(next);
  }
  return { bytes, entries };
}

function contentOf(one: object): readonly unknown[] {
  if (one instanceof Map) return [...one].flat();
  if (one instanceof Set) return [...one];
  return Object.values(one);
}
