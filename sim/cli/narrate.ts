/** Actions, outputs and the flow table as text: for the verbose run of one seed, and for the last actions of a failure. */
import { formatAddress, type Address } from '../../core/address.ts';
import { assertNever } from '../../core/assert.ts';
import { flowId } from '../../core/brand.ts';
import type { Output } from '../../core/contract.ts';
import type { UdpManager } from '../../core/manager.ts';
import type { Instant } from '../../core/time.ts';
import { HEADER_FILL } from '../core-harness/actions.ts';
import { sourceAt } from '../core-harness/pools.ts';
import type { Action, Trace } from '../index.ts';

/** Above this many flows a table is told by its size alone. */
const FLOWS_SHOWN = 8;

/** Tells a run, line by line: each action, each call with its outputs and the clock, and the table after it. */
export class Narrator implements Trace {
  private readonly write: (line: string) => void;

  constructor(write: (line: string) => void) {
    this.write = write;
  }

  action(action: Action, step: number): void {
    this.write(`step ${step}: ${describeAction(action)}`);
  }

  call(name: string, now: Instant, outputs: readonly Output[], manager: UdpManager): void {
    this.write(`  ${name} at ${seconds(now)}`);
    for (const output of outputs) this.write(`    ${describeOutput(output)}`);
    this.table(manager);
  }

  private table(manager: UdpManager): void {
    const { flowCount } = manager;
    const at = manager.pollTimeout();
    const armed = at === undefined ? 'timer not armed' : `timer armed at ${seconds(at)}`;
    this.write(`  table: ${flowCount} of ${manager.maxFlows} flows, ${armed}`);
    if (flowCount > FLOWS_SHOWN) return;
    let left = flowCount;
    for (let id = 0; left > 0; id += 1) {
      const flow = manager.flow(flowId(id));
      if (flow === undefined) continue;
      left -= 1;
      this.write(
        `    flow ${id}: ${address(flow.client)} to ${address(flow.backend.address)}, ` +
          `${flow.requestsSeen} in, ${flow.responsesSeen} out, ` +
          `${flow.phase === 'Lingering' ? 'lingers until' : 'idle at'} ${seconds(flow.idleDeadline)}`,
      );
    }
  }
}

export function describeAction(action: Action): string {
  switch (action.kind) {
    case 'ClientDatagram':
      return `ClientDatagram from ${source(action.source)}, ${payload(action.payload)}`;
    case 'BackendDatagram': {
      const { flow } = action;
      const whose = flow.by === 'id' ? `flow ${flow.id}` : `the flow remembered at ${flow.index}`;
      return `BackendDatagram of ${whose}, ${payload(action.payload)}`;
    }
    case 'Drain':
      return (
        `Drain, with a datagram from ${source(action.source)}, ${payload(action.payload)}, ` +
        `then a listener with cap ${action.cap} and ${fields(action.next)}`
      );
    case 'BackendView':
      return `BackendView ${fields(action.change)}`;
    case 'ReconfigCluster':
      return `ReconfigCluster ${fields(action.config)}`;
    default: {
      const { kind, ...rest } = action;
      return `${kind} ${fields(rest)}`.trimEnd();
    }
  }
}

function describeOutput(output: Output): string {
  switch (output.kind) {
    case 'OpenUpstream':
      return `OpenUpstream of flow ${output.flow} to ${address(output.backend.address)}`;
    case 'SendToBackend': {
      const header = output.prefix === undefined ? '' : `a header of ${output.prefix.length} + `;
      const size = `${header}${output.payload.length} bytes`;
      return `SendToBackend of flow ${output.flow} to ${address(output.dst)}, ${size}`;
    }
    case 'SendToClient':
      return `SendToClient of flow ${output.flow} to ${address(output.dst)}, ${output.payload.length} bytes`;
    case 'TrainToBackend':
    case 'TrainToClient': {
      const size = `${output.payload.length} bytes in datagrams of ${output.unit}`;
      return `${output.kind} of flow ${output.flow} to ${address(output.dst)}, ${size}`;
    }
    case 'ArmTimer':
      return `ArmTimer at ${seconds(output.at)}`;
    case 'Metric': {
      const { event } = output;
      return `Metric ${event.kind}${'bytes' in event ? ` of ${event.bytes} bytes` : ''}`;
    }
    case 'CloseFlow':
      return `CloseFlow of flow ${output.flow}: ${output.reason}`;
    case 'Drop':
      return `Drop: ${output.reason}`;
    default:
      return assertNever(output);
  }
}

function payload({ length, fill }: { readonly length: number; readonly fill: number }): string {
  if (length === 0) return 'empty';
  if (fill === HEADER_FILL) return `${length} bytes that begin like a PROXY header`;
  return `${length} bytes of 0x${fill.toString(16).padStart(2, '0')}`;
}

function source(index: number): string {
  return address(sourceAt(index));
}

function address(value: Address): string {
  return formatAddress(value);
}

function fields(value: object): string {
  return Object.entries(value)
    .map(([name, field]: [string, unknown]) =>
      typeof field === 'object' && field !== null ? fields(field) : `${name} ${String(field)}`,
    )
    .join(', ');
}

export function seconds(now: number): string {
  return `${(now / 1_000_000).toFixed(6)} s`;
}
