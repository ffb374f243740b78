/** What the shadow model expects of the machine: outputs by pool places instead of addresses. */
import { assertNever } from '../../core/assert.ts';
import type { CloseReason, DropReason, MetricEvent, Refusal } from '../../core/contract.ts';

/** An expected output, by pool places instead of addresses. */
export type Expected =
  | { readonly kind: 'OpenUpstream'; readonly flow: number; readonly backend: number }
  | {
      readonly kind: 'SendToBackend';
      readonly flow: number;
      readonly backend: number;
      readonly source: number;
      readonly header: boolean;
    }
  | { readonly kind: 'SendToClient'; readonly flow: number; readonly source: number }
  | { readonly kind: 'ArmTimer'; readonly at: number }
  | { readonly kind: 'Metric'; readonly event: MetricEvent['kind']; readonly bytes: number }
  | { readonly kind: 'CloseFlow'; readonly flow: number; readonly reason: CloseReason }
  | { readonly kind: 'Drop'; readonly reason: DropReason };

/** What is told of a client that may not open a flow now. */
export function refusedWith(refusal: Refusal): Expected[] {
  switch (refusal) {
    case 'Loop':
      return [metric('LoopRefused', 0), { kind: 'Drop', reason: 'Invalid' }];
    case 'NewFlowRate':
    case 'DatagramRate':
      return [{ kind: 'Drop', reason: refusal }];
    case 'NoDescriptor':
      return [metric('FlowShed', 0), { kind: 'Drop', reason: 'Shed' }];
    case 'PortExhausted':
      return [metric('FlowShed', 0), { kind: 'Drop', reason: 'PortExhausted' }];
    default:
      return assertNever(refusal);
  }
}

export function metric(event: MetricEvent['kind'], bytes: number): Expected {
  return { kind: 'Metric', event, bytes };
}
