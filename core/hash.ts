/** 64-bit hashing on two 32-bit halves: no bigint on any path. */

/** A 64-bit value as two unsigned 32-bit halves. */
export interface Hash64 {
  readonly high: number;
  readonly low: number;
}
