/** A snapshot of a whole proxy: both of its machines at one instant, with the settings that they share. */
import type { ControlPlane } from './control-plane.ts';
import type { DataPlane } from './data-plane.ts';
import { coreCatalog } from './snapshot-classes.ts';
import { restoreInto, takeFrom, type SnapshotOptions } from './snapshot-machines.ts';

export interface ProxyMachines {
  readonly data: DataPlane;
  readonly control: ControlPlane;
}

/** Between turns, with the outputs of both drained. What is under way from one to the other is in neither. */
export function snapshotProxy(
  { data, control }: ProxyMachines,
  options: SnapshotOptions = {},
): Uint8Array {
  return takeFrom(coreCatalog(), [data, control], options);
}

/** See restoreSnapshot: both machines go on, or neither was touched. */
export function restoreProxy({ data, control }: ProxyMachines, bytes: Uint8Array): void {
  restoreInto(coreCatalog(), [data, control], bytes);
}
