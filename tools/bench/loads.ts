/** The loads of a bench, as data: how many flows, how much of each is on its way, how large. */

export interface Load {
  /** Live flows. */
  readonly flows: number;
  /** How many of them carry datagrams; absent: all. */
  readonly active?: number;
  /** Datagrams that each active flow keeps on their way. */
  readonly window: number;
  /** Payload of each, at least 8. */
  readonly bytes: number;
  /** A flow's window leaves as one burst, and the next when all of it is back. */
  readonly inBursts?: boolean;
  /** Load and backend hand trains of datagrams to the kernel, and take them, in one piece. */
  readonly offload?: boolean;
}

export const THOUSAND_FLOWS: Load = { flows: 1_000, window: 1, bytes: 64 };

export const SMALL_LOADS: readonly Load[] = [
  { flows: 16, window: 16, bytes: 64 },
  { flows: 256, window: 4, bytes: 64 },
  THOUSAND_FLOWS,
];

export const MANY_FLOWS: Load = { flows: 10_000, active: 1_000, window: 1, bytes: 64 };

export const LARGE_DATAGRAMS: Load = { flows: 16, window: 16, bytes: 1_200 };

export const BURSTS: Load = { flows: 1, window: 64, bytes: 1_200, inBursts: true, offload: true };

/** The name of a load in figures and tables. */
export function loadName({ flows, active, window, bytes, inBursts }: Load): string {
  if (inBursts === true) return `bursts of ${window} x ${bytes} bytes`;
  const size = bytes === 64 ? '' : `, ${bytes} bytes`;
  return active === undefined
    ? `${flows} x ${window}${size}`
    : `${flows} live, ${active} x ${window}${size}`;
}

/** A load as words of a command line, and back. */
export function loadWords(load: Load): string[] {
  const { flows, active = flows, window, bytes, inBursts = false, offload = false } = load;
  return [flows, active, window, bytes, inBursts ? 1 : 0, offload ? 1 : 0].map(String);
}

export function parseLoad(words: readonly string[]): Load {
  const [flows = 1, active = flows, window = 1, bytes = 64, ...rest] = words.map(Number);
  const [inBursts, offload] = rest.map((word) => word === 1);
  return { flows, active, window, bytes, inBursts: inBursts ?? false, offload: offload ?? false };
}
