/** Whether two pieces of plain data say the same, so that a command that changes nothing is known for one. */

/** Deep, over arrays, bytes and plain objects. A key that is undefined counts as absent. */
export function sameValue(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (typeof one !== 'object' || typeof other !== 'object') return false;
  if (one === null || other === null || Array.isArray(one) !== Array.isArray(other)) return false;
  const left = fieldsOf(one);
  const right = fieldsOf(other);
  if (left.size !== right.size) return false;
  for (const [key, value] of left) if (!sameValue(value, right.get(key))) return false;
  return true;
}

function fieldsOf(data: object): Map<string, unknown> {
  const fields: [string, unknown][] = Object.entries(data);
  return new Map(fields.filter(([, value]) => value !== undefined));
}
