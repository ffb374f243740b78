/** Questions about all flows of a machine, for operators and for sweeps: they walk the table, so no datagram asks them. */
import type { FlowTable } from './flow-table.ts';

/** The slot of the live flow with this serial number. */
export function slotOfSerial(table: FlowTable, serial: number): number | undefined {
  for (let slot = 0; slot < table.highWater; slot += 1) {
    if (table.isLive(slot) && table.serialOf(slot) === serial) return slot;
  }
  return undefined;
}

/** The first slot from `from` on whose live flow has this registry number of a backend. */
export function nextSlotOn(table: FlowTable, backend: number, from: number): number | undefined {
  for (let slot = from; slot < table.highWater; slot += 1) {
    if (table.isLive(slot) && table.backendOf(slot) === backend) return slot;
  }
  return undefined;
}
