/** The words and marks that snapshots are written in. */

/** "SUDP", read as a number. */
export const MAGIC = 0x53554450;
export const VERSION = 2;

/** Words of the header: magic, version, fingerprint, length of all and of the graph in bytes, machines. */
export const WORDS = {
  magic: 0,
  version: 1,
  fingerprint: 2,
  length: 3,
  graph: 4,
  machines: 5,
  end: 8,
} as const;

/** What follows in the graph. */
export const MARK = {
  undefined: 0,
  null: 1,
  false: 2,
  true: 3,
  /** A count; and below zero, what a count lacks. */
  natural: 4,
  negative: 19,
  float: 5,
  /** Text that is new, and the number of one that is not. */
  text: 6,
  knownText: 7,
  /** A place in a list where there is nothing, not even undefined. */
  hole: 8,
  /** The one that a new machine has in this place. */
  function: 9,
  /** The number of an object that was written before. */
  known: 10,
  constant: 11,
  plain: 12,
  instance: 13,
  list: 14,
  map: 15,
  set: 16,
  /** Its kind, and a buffer. */
  view: 17,
  buffer: 18,
} as const;
