/** Whether two pieces of plain data say the same, so that a command that changes nothing is known for one. */

/** Deep, over arrays, bytes and plain objects. A key that is undefined counts as absent. */
export function sameValue(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (typeof one !== 'object' || typeof other !== 'object') return false;
  if (one === null || other === null || Array.isArray(one) !== Array.isArray(other)) return false;
  const keys = keysOf(one);
  if (keys.length !== keysOf(other).length) return false;
  return keys.every(
    (key) => Object.hasOwn(other, key) && sameValue(Reflect.get(one, key), Reflect.get(other, key)),
  );
}

function keysOf(data: object): string[] {
  return Object.keys(data).filter((key) => Reflect.get(data, key) !== undefined);
}
