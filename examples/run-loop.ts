/** The run loop around a flow machine, as core/README.md shows it: everything that may happen to the machine, happens here. */
import {
  assertNever,
  type Address,
  type Backend,
  type FlowId,
  type Instant,
  type ManagerInput,
  type Output,
  type UdpManager,
} from '../core/index.ts';

/** What the machine asks of the world. Payloads and headers are borrowed until `turn` returns. */
export interface World {
  open(flow: FlowId, backend: Backend): void;
  toBackend(flow: FlowId, header: Uint8Array | undefined, payload: Uint8Array): void;
  toClient(client: Address, payload: Uint8Array): void;
  close(flow: FlowId): void;
  wakeAt(at: Instant | undefined): void;
}

/** One input, or the timer; then every output; then one look at the next deadline. */
export function turn(
  manager: UdpManager,
  input: ManagerInput | 'timer',
  now: Instant,
  world: World,
): void {
  if (input === 'timer') manager.handleTimeout(now);
  else manager.handleInput(input, now);
  for (let output = manager.pollOutput(); output !== undefined; output = manager.pollOutput()) {
    perform(output, world);
  }
  world.wakeAt(manager.pollTimeout());
}

function perform(output: Output, world: World): void {
  switch (output.kind) {
    case 'OpenUpstream':
      return world.open(output.flow, output.backend);
    case 'SendToBackend':
      return world.toBackend(output.flow, output.prefix, output.payload);
    case 'SendToClient':
      return world.toClient(output.dst, output.payload);
    case 'CloseFlow':
      return world.close(output.flow);
    // Only what came as a train leaves as one, and this loop feeds datagrams one by one.
    case 'TrainToBackend':
    case 'TrainToClient':
    case 'ArmTimer': // the loop asks pollTimeout once a turn instead
    case 'Metric':
    case 'Drop':
      return undefined;
    default:
      return assertNever(output);
  }
}
