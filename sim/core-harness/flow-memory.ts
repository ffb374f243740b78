/** Ids of the flows that were opened lately, gone ones too: what replies are drawn from (spec §11.1). */
import type { FlowReference } from './actions.ts';

const REMEMBERED = 256;

export class FlowMemory {
  private readonly flows: number[] = [];

  get size(): number {
    return this.flows.length;
  }

  note(flow: number): void {
    this.flows.push(flow);
    if (this.flows.length > REMEMBERED) this.flows.shift();
  }

  forget(): void {
    this.flows.length = 0;
  }

  resolve(reference: FlowReference): number {
    if (reference.by === 'id') return reference.id;
    const { length } = this.flows;
    return this.flows[reference.index % Math.max(1, length)] ?? reference.otherwise;
  }
}
