/** A snapshot of a whole proxy: both of its machines at one instant, with the settings that they share. */
import type { ControlPlane } from './control-plane.ts';
import type { DataPlane } from './data-plane.ts';
import { coreCatalog } from './snapshot-classes.ts';
import {
  draftFrom,
  restoreInto,
  takeFrom,
  type DraftOptions,
  type SnapshotDraft,
  type SnapshotOptions,
} from './snapshot-machines.ts';

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

/** The same for somebody who is in a hurry: into memory that is used again, and without the checksum. */
export function draftProxy(
  { data, control }: ProxyMachines,
  options: DraftOptions = {},
): SnapshotDraft {
  return draftFrom(coreCatalog(), [data, control], options);
}

/** See restoreSnapshot: both machines go on, or neither was touched. */
export function restoreProxy({ data, control }: ProxyMachines, bytes: Uint8Array): void {
  restoreInto(coreCatalog(), [data, control], bytes);
}
