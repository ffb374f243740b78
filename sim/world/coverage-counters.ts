/** What must happen somewhere in the worlds, as far as a process or its kernel counts it: places that a sweep has to reach. */
import { sometimes, type Property } from '../properties.ts';
import type { ProcessTotals } from './facts.ts';
import type { Verdicts } from './verdicts.ts';

type Counted = readonly [Property<'sometimes'>, (totals: ProcessTotals) => number];

const FLOWS: readonly Counted[] = [
  [sometimes('a flow ends idle'), ({ counters }) => counters.closedIdle],
  [sometimes('a flow ends with its last answer'), ({ counters }) => counters.closedResponses],
  [sometimes('a flow ends with its last request'), ({ counters }) => counters.closedRequests],
  [sometimes('a flow ends with its listener'), ({ counters }) => counters.closedDrain],
  [sometimes('a flow ends for want of a socket'), ({ counters }) => counters.closedAborted],
  [sometimes('a flow ends with its backend'), ({ counters }) => counters.closedBackendLost],
  [sometimes('an operator ends a flow'), ({ counters }) => counters.closedKilled],
  [sometimes('a flow goes on with another backend'), ({ counters }) => counters.flowsRebound],
  [sometimes('a flow is shed at the cap'), ({ counters }) => counters.flowsShed],
  [sometimes('a flow is shed by its source'), ({ counters }) => counters.flowsShedSourceLimit],
];

const DROPS: readonly Counted[] = [
  [sometimes('a datagram is nobody’s'), ({ counters }) => counters.droppedInvalid],
  [sometimes('a datagram is too large'), ({ counters }) => counters.droppedTruncated],
  [sometimes('a datagram finds no backend'), ({ counters }) => counters.droppedNoBackend],
  [sometimes('a datagram is of no flow'), ({ counters }) => counters.droppedUnknownFlow],
  [sometimes('a queue has no room'), ({ counters }) => counters.droppedWqFull],
  [sometimes('the kernel refuses a send'), ({ counters }) => counters.droppedSendError],
  [sometimes('a send is above the path'), ({ counters }) => counters.droppedTooBig],
  [sometimes('a send waits for a closed socket'), ({ counters }) => counters.droppedClosed],
  [sometimes('a source is denied'), ({ counters }) => counters.droppedDenied],
  [sometimes('a source opens flows too fast'), ({ counters }) => counters.droppedNewFlowRate],
  [sometimes('a source sends too fast'), ({ counters }) => counters.droppedDatagramRate],
  [sometimes('an answer is over its credit'), ({ counters }) => counters.droppedAmplification],
  [sometimes('no local port is left'), ({ counters }) => counters.droppedPortExhausted],
  [sometimes('a datagram that would circle is refused'), ({ counters }) => counters.loopsRefused],
  [sometimes('a header of a client is refused'), ({ counters }) => counters.headersRefused],
  [sometimes('a refusal is heard'), ({ counters }) => counters.upstreamRefused],
  [sometimes('a send fails late'), ({ counters }) => counters.sendFailedLate],
];

const KERNEL: readonly Counted[] = [
  [sometimes('a receive buffer overflows'), ({ kernelIn }) => kernelIn.overflowed],
  [sometimes('an upstream socket hears a stranger'), ({ kernelIn }) => kernelIn.strange],
  [sometimes('a machine sleeps through a datagram'), ({ kernelIn }) => kernelIn.unheard],
  [sometimes('a socket closes on what it heard'), ({ kernelIn }) => kernelIn.abandoned],
  [sometimes('a send never completes'), ({ kernelOut }) => kernelOut.stalled],
];

/** Of one process, until now. */
export function seeCounted(verdicts: Verdicts, totals: ProcessTotals): void {
  for (const [property, count] of [...FLOWS, ...DROPS, ...KERNEL]) {
    if (count(totals) > 0) verdicts.see(property);
  }
}
