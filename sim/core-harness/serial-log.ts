/** The serials of one machine's flows, read after each call: the names by which an operator kills them. */
import type { Output } from '../../core/contract.ts';
import type { UdpManager } from '../../core/manager.ts';
import type { Observer } from '../properties.ts';
import * as properties from './properties.ts';

export class SerialLog {
  private readonly observer: Observer;
  /** Of the flow that lives in each slot. */
  private readonly known: (number | undefined)[] = [];
  private readonly given = new Set<number>();

  constructor(observer: Observer) {
    this.observer = observer;
  }

  /** `outputs` are those of the latest call. */
  note(outputs: readonly Output[], manager: UdpManager): void {
    for (const output of outputs) {
      if (output.kind === 'CloseFlow') this.known[output.flow] = undefined;
      else if (output.kind === 'SendToBackend' || output.kind === 'SendToClient') {
        this.compare(output.flow, manager);
      }
    }
  }

  private compare(flow: number, { table }: UdpManager): void {
    if (!table.isLive(flow)) return;
    const serial = table.serialOf(flow);
    const known = this.known[flow];
    const isOwn = known === undefined ? !this.given.has(serial) : serial === known;
    this.observer.check(properties.SERIAL, isOwn);
    this.known[flow] = serial;
    this.given.add(serial);
  }
}
