/**
 * Assertions that stay on in production. A failed one is a bug of ours, never bad input: input from the network is
 * counted, input from an operator is answered. See doc/ARCHITECTURE.md, "When an assertion fails".
 */

/** A bug in this program. Who catches it may restart a listener (listener-restarts.ts); nobody may carry on with its state. */
export class AssertionError extends Error {
  override readonly name: string = 'AssertionError';
}

/** Throws unless `condition` holds. `claim` says what should have been true. */
export function assert(condition: boolean, claim: string): asserts condition {
  if (!condition) throw new AssertionError(claim);
}

/** Marks a branch the compiler has proved impossible. */
export function assertNever(value: never): never {
  throw new AssertionError(`impossible value: ${JSON.stringify(value)}`);
}

/** Returns `value`, which must be there; `claim` says why it must. */
export function present<T>(value: T | undefined, claim: string): T {
  if (value === undefined) throw new AssertionError(claim);
  return value;
}
