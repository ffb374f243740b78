/**
 * Exact snapshots of machines: all that is in one, as bytes, and a machine that goes on from there as the first would have.
 * Nothing is listed by hand: whatever a field holds is found by looking, so a new field cannot be forgotten (decision 0020).
 */
import type { ControlPlane } from './control-plane.ts';
import type { DataPlane } from './data-plane.ts';
import { coreCatalog } from './snapshot-classes.ts';
import { restoreInto, takeFrom, type SnapshotOptions } from './snapshot-machines.ts';

/**
 * The whole state of a machine whose outputs are drained. It holds the secret seeds, addresses of clients and, unless told
 * otherwise, bytes of datagrams: to be kept as such.
 */
export function takeSnapshot(
  machine: DataPlane | ControlPlane,
  options: SnapshotOptions = {},
): Uint8Array {
  return takeFrom(coreCatalog(), [machine], options);
}

/**
 * Makes of `machine`, which was made with the same options, the one that the snapshot was taken of. Throws a SnapshotError
 * for any other bytes, and has changed nothing then.
 */
export function restoreSnapshot(machine: DataPlane | ControlPlane, bytes: Uint8Array): void {
  restoreInto(coreCatalog(), [machine], bytes);
}
