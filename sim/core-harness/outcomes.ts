/** What rare things a call showed, for the properties that a sweep must have seen sometimes. */
import type { CloseReason, DropReason, MetricEvent, Output } from '../../core/contract.ts';
import type { Observer, Property } from '../properties.ts';
import * as properties from './properties.ts';

type Seen<Word extends string> = Readonly<Partial<Record<Word, Property<'sometimes'>>>>;

const BY_CLOSE: Seen<CloseReason> = {
  ResponsesReached: properties.RESPONSES_CAP,
  RequestsReached: properties.REQUESTS_CAP,
  BackendLost: properties.LOST,
  Killed: properties.KILLED,
};

const BY_DROP: Seen<DropReason> = {
  Truncated: properties.OVERSIZE,
  UnknownFlow: properties.STALE_ID,
  Denied: properties.DENIED,
  DatagramRate: properties.TOO_FAST,
  Amplification: properties.TOO_MUCH,
  PortExhausted: properties.NO_PORT,
};

const BY_METRIC: Seen<MetricEvent['kind']> = {
  FlowShed: properties.SHED_AT_CAP,
  HeaderRefused: properties.HEADER_REFUSED,
  FlowRebound: properties.REBOUND,
  LoopRefused: properties.LOOP_REFUSED,
};

/** `outputs` are those of one call. */
export function noteOutcomes(outputs: readonly Output[], observer: Observer): void {
  for (const output of outputs) {
    const seen = seenIn(output);
    if (seen !== undefined) observer.check(seen, true);
  }
}

function seenIn(output: Output): Property<'sometimes'> | undefined {
  switch (output.kind) {
    case 'CloseFlow':
      return BY_CLOSE[output.reason];
    case 'Drop':
      return BY_DROP[output.reason];
    case 'Metric':
      return BY_METRIC[output.event.kind];
    case 'SendToBackend':
      return output.payload.length === 0 ? properties.EMPTY_FORWARDED : undefined;
    default:
      return undefined;
  }
}
