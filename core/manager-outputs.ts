/** Outputs of the flow machine that carry nothing of their own: made once, so that a flood of drops allocates nothing. */
import type { DropReason, Output, Refusal } from './contract.ts';

export const DROPS: Readonly<Record<DropReason, Output>> = {
  Truncated: { kind: 'Drop', reason: 'Truncated' },
  NoBackend: { kind: 'Drop', reason: 'NoBackend' },
  Invalid: { kind: 'Drop', reason: 'Invalid' },
  Shed: { kind: 'Drop', reason: 'Shed' },
  UnknownFlow: { kind: 'Drop', reason: 'UnknownFlow' },
  Denied: { kind: 'Drop', reason: 'Denied' },
  NewFlowRate: { kind: 'Drop', reason: 'NewFlowRate' },
  DatagramRate: { kind: 'Drop', reason: 'DatagramRate' },
  Amplification: { kind: 'Drop', reason: 'Amplification' },
  PortExhausted: { kind: 'Drop', reason: 'PortExhausted' },
};
export const FLOW_CREATED: Output = { kind: 'Metric', event: { kind: 'FlowCreated' } };
export const FLOW_EVICTED: Output = { kind: 'Metric', event: { kind: 'FlowEvicted' } };
export const FLOW_REBOUND: Output = { kind: 'Metric', event: { kind: 'FlowRebound' } };
export const FLOW_SHED: Output = { kind: 'Metric', event: { kind: 'FlowShed' } };
const LOOP_REFUSED: Output = { kind: 'Metric', event: { kind: 'LoopRefused' } };
const HEADER_REFUSED: Output = { kind: 'Metric', event: { kind: 'HeaderRefused' } };
export const FLOW_SHED_SOURCE_LIMIT: Output = {
  kind: 'Metric',
  event: { kind: 'FlowShedSourceLimit' },
};

export const REFUSED_HEADER: readonly Output[] = [HEADER_REFUSED, DROPS.Invalid];

/** What is told of a source that may not open a flow. */
export const REFUSED: Readonly<Record<Refusal, readonly Output[]>> = {
  Loop: [LOOP_REFUSED, DROPS.Invalid],
  NewFlowRate: [DROPS.NewFlowRate],
  DatagramRate: [DROPS.DatagramRate],
  NoDescriptor: [FLOW_SHED, DROPS.Shed],
  PortExhausted: [FLOW_SHED, DROPS.PortExhausted],
};

/** The metric of a forwarded datagram by its size, made once each: two objects fewer per datagram. */
class SizeMetrics {
  private readonly kind: 'DatagramIn' | 'DatagramOut';
  private readonly bySize: (Output | undefined)[] = Array.from({ length: 2_048 });

  constructor(kind: 'DatagramIn' | 'DatagramOut') {
    this.kind = kind;
  }

  of(bytes: number): Output {
    const known = this.bySize[bytes];
    if (known !== undefined) return known;
    const made: Output = { kind: 'Metric', event: { kind: this.kind, bytes } };
    if (bytes < this.bySize.length) this.bySize[bytes] = made;
    return made;
  }
}

export const DATAGRAM_IN: SizeMetrics = new SizeMetrics('DatagramIn');
export const DATAGRAM_OUT: SizeMetrics = new SizeMetrics('DatagramOut');
