/** Inputs and outputs of a trace in lines for people: what came, from whom, and what became of it. */
import { formatAddress, formatIp, type Address } from './address.ts';
import { listenerOf, serialOf, type SocketId } from './brand.ts';
import type { ControlOutput } from './control-contract.ts';
import type { PlaneOutput } from './plane-contract.ts';
import type { SendFailed } from './ports.ts';
import type { ControlStep, DataStep, Step } from './trace-record.ts';
import { datagramsIn, isTrainOutput, type TrainOutput } from './train.ts';

/** `client 10.0.0.1:5353 to listener 0: 45 bytes`, and so on. */
export function describeStep({ machine, input }: Step): string {
  return machine === 'data' ? describeDataStep(input) : describeControlStep(input);
}

function describeDataStep(input: DataStep): string {
  switch (input.kind) {
    case 'ClientArrived': {
      const to = input.local === undefined ? '' : ` at ${formatIp(input.local)}`;
      const size = input.payload.length;
      return `client ${formatAddress(input.src)} to listener ${input.listener}${to}: ${size} bytes`;
    }
    case 'ClientTrain': {
      const to = input.local === undefined ? '' : ` at ${formatIp(input.local)}`;
      const what = describeTrain(input.payload, input.unit);
      return `client ${formatAddress(input.src)} to listener ${input.listener}${to}: ${what}`;
    }
    case 'BackendTrain':
      return `backend to ${nameOf(input.socket)}: ${describeTrain(input.payload, input.unit)}`;
    case 'BackendArrived':
      return `backend to ${nameOf(input.socket)}: ${input.payload.length} bytes`;
    case 'Refused':
    case 'UpstreamWritable':
      return `${input.kind} ${nameOf(input.socket)}`;
    case 'OpenFailed': {
      const way = wayTo(input.backend, input.source);
      return `OpenFailed ${nameOf(input.socket)}${way}: ${input.errno}, unsent ${input.unsent}`;
    }
    case 'SendFailed':
      return describeFailure(input.failure);
    default:
      return described(input);
  }
}

function describeControlStep(input: ControlStep): string {
  if (input.kind === 'Command') return `Command ${described(input.command)}`;
  return `control ${described(input)}`;
}

/** An output of either machine. */
export function describeOutput(output: PlaneOutput | ControlOutput): string {
  if (isTrainOutput(output)) return describeTrainOutput(output);
  switch (output.kind) {
    case 'SendToBackend': {
      const header = output.header === undefined ? '' : `header ${output.header.length} and `;
      return `SendToBackend ${nameOf(output.socket)}: ${header}${output.payload.length} bytes`;
    }
    case 'SendToClient':
      return `SendToClient ${nameOfWay(output)}: ${output.payload.length} bytes`;
    case 'OpenUpstream':
    case 'RefuseUpstream':
      return `${output.kind} ${nameOf(output.socket)}${wayTo(output.backend, output.source)}`;
    case 'CloseUpstream':
    case 'WatchUpstream':
      return `${output.kind} ${nameOf(output.socket)}`;
    case 'Direct':
      return `Direct ${described(output.message.directive)}`;
    case 'Report':
      return `Report ${described(output.report)}`;
    case 'Event':
      return `Event ${described(output.event)}`;
    default:
      return described(output);
  }
}

function describeTrainOutput(output: TrainOutput): string {
  const what = describeTrain(output.payload, output.unit);
  if (output.kind === 'TrainToBackend') return `TrainToBackend ${nameOf(output.socket)}: ${what}`;
  return `TrainToClient ${nameOfWay(output)}: ${what}`;
}

/** The way to a client. */
function nameOfWay(
  output: Extract<PlaneOutput, { kind: 'SendToClient' | 'TrainToClient' }>,
): string {
  const from = output.from === undefined ? '' : ` from ${formatIp(output.from)}`;
  return `${formatAddress(output.dst)}${from}, listener ${output.listener}`;
}

function describeTrain(payload: Uint8Array, unit: number): string {
  return `${datagramsIn(payload, unit)} datagrams, ${payload.length} bytes`;
}

function describeFailure(failure: SendFailed): string {
  const who =
    failure.direction === 'to-backend' ? nameOf(failure.socket) : `listener ${failure.listener}`;
  const what =
    failure.cause === 'error' ? failure.errno : `${failure.cause}, ${failure.payload.length} bytes`;
  return `SendFailed ${who}: ${what}`;
}

function wayTo(backend: Address, source: Address | undefined): string {
  return ` to ${formatAddress(backend)}${source === undefined ? '' : ` from ${formatIp(source)}`}`;
}

/** As operators and tests know it: the listener, and the serial number of the socket. */
function nameOf(socket: SocketId): string {
  return `socket ${listenerOf(socket)}.${serialOf(socket)}`;
}

/** Longer lines help nobody: a reload is told by its first part. */
const LINE_LENGTH_MAX = 400;

/** Kind, and the rest as data; addresses as text, bytes as their number. */
function described({ kind, ...rest }: { readonly kind: string }): string {
  const text = JSON.stringify(rest, (_, value: unknown) => readable(value));
  const line = text === '{}' ? kind : `${kind} ${text}`;
  return line.length > LINE_LENGTH_MAX ? `${line.slice(0, LINE_LENGTH_MAX)}…` : line;
}

function readable(value: unknown): unknown {
  if (value instanceof Uint8Array) return `${value.length} bytes`;
  return isAddress(value) ? formatAddress(value) : value;
}

function isAddress(value: unknown): value is Address {
  return typeof value === 'object' && value !== null && 'family' in value && 'scope' in value;
}
