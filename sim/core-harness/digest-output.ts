/** An output as digest words, without any spelling: two guises of one run have one digest. */
import type { Address } from '../../core/address.ts';
import type { MetricEvent, Output } from '../../core/contract.ts';
import type { Digest } from '../digest.ts';

/** A place in this list stands for the word. */
const WORDS = [
  'OpenUpstream',
  'SendToBackend',
  'SendToClient',
  'ArmTimer',
  'Metric',
  'CloseFlow',
  'Drop',
  'FlowCreated',
  'FlowEvicted',
  'FlowShed',
  'FlowShedSourceLimit',
  'DatagramIn',
  'DatagramOut',
  'Truncated',
  'NoBackend',
  'Invalid',
  'Shed',
  'UnknownFlow',
  'Idle',
  'ResponsesReached',
  'RequestsReached',
  'Drain',
  'Aborted',
  'HeaderRefused',
  'LoopRefused',
  'FlowRebound',
  'Denied',
  'NewFlowRate',
  'DatagramRate',
  'Amplification',
  'PortExhausted',
  'BackendLost',
  'Killed',
] as const;

const NUMBERS = new Map<string, number>(WORDS.map((word, index) => [word, index + 1]));

export function digestOutput(digest: Digest, output: Output): void {
  digest.number(numberOf(output.kind));
  switch (output.kind) {
    case 'OpenUpstream':
      digest.number(output.flow).number(output.backend.address.port);
      break;
    case 'SendToBackend':
      digest.number(output.flow).number(output.dst.port);
      digestEnds(digest, output.payload);
      if (output.prefix !== undefined) digest.bytes(output.prefix);
      break;
    case 'SendToClient':
      digest.number(output.flow).number(output.dst.a).number(output.dst.port);
      if (output.dst.family === 6) digestIpv6(digest, output.dst);
      digestEnds(digest, output.payload);
      break;
    case 'ArmTimer':
      digest.number(output.at);
      break;
    case 'Metric':
      digestMetric(digest, output.event);
      break;
    case 'CloseFlow':
      digest.number(output.flow).number(numberOf(output.reason));
      break;
    case 'Drop':
      digest.number(numberOf(output.reason));
      break;
    // The harness has taken them apart.
    case 'TrainToBackend':
    case 'TrainToClient':
      break;
  }
}

function digestMetric(digest: Digest, event: MetricEvent): void {
  digest.number(numberOf(event.kind));
  if ('bytes' in event) digest.number(event.bytes);
}

function digestIpv6(digest: Digest, { b, c, d, scope }: Address): void {
  digest.number(b).number(c).number(d).number(scope);
}

/** Length and outermost bytes: every byte was compared already. */
function digestEnds(digest: Digest, payload: Uint8Array): void {
  digest.number(payload.length);
  if (payload.length > 0) digest.number(payload[0] ?? -1).number(payload.at(-1) ?? -1);
}

function numberOf(word: string): number {
  return NUMBERS.get(word) ?? 0;
}
