/** The checks of a whole state between two calls: spec §11.4 the invariants of §2.14, and those of our own (verify.ts). */
import type { UdpManager } from '../../core/manager.ts';
import type { Verifier } from '../../core/verify.ts';
import type { Observer, Property } from '../properties.ts';
import * as properties from './properties.ts';

const INVARIANTS: readonly (readonly [string, Property<'always'>])[] = [
  ['I1:', properties.COUNTED],
  ['I2/I3:', properties.INDEXED],
  ['I5:', properties.REGISTERED],
  ['I6:', properties.EARLIEST],
  ['I7:', properties.EXHAUSTED],
  ['I8:', properties.HIGH_WATER],
  ['I13:', properties.RECOUNTED],
];

/** Of what the seeds' table does not know. */
const GUARDED_INVARIANTS: typeof INVARIANTS = [
  ...INVARIANTS,
  ['I14:', properties.LINGERING],
  ['I15:', properties.NUMBERED],
  ['I16:', properties.CREDITED],
];

/** What the outside has counted of this machine. */
export interface Outside {
  readonly created: number;
  readonly evicted: number;
  /** The highest cap ever set, as the model knows it. */
  readonly highestCap: number;
  /** Whether the run ever left the seeds' table. */
  readonly isGuarded: boolean;
}

export function checkState(
  manager: UdpManager,
  outside: Outside,
  observer: Observer,
  verifier: Verifier,
): void {
  const { flowCount } = manager;
  const drained = manager.pendingOutputs === 0 && manager.pollOutput() === undefined;
  observer.check(properties.DRAINED, drained);
  observer.check(properties.WITHIN_CAPS, flowCount <= outside.highestCap);
  observer.check(properties.BALANCED, outside.created - outside.evicted === flowCount);
  observer.check(properties.ARMED, (manager.pollTimeout() !== undefined) === flowCount > 0);
  observer.check(properties.SHRUNK, flowCount > manager.maxFlows);
  const broken = verifier.brokenInvariants(manager);
  const invariants = outside.isGuarded ? GUARDED_INVARIANTS : INVARIANTS;
  for (const [prefix, property] of invariants) {
    observer.check(property, broken.length === 0 || !broken.some((one) => one.startsWith(prefix)));
  }
}
