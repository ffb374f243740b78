/**
 * The cause of every loss in a proxy is the one that is counted. Causes follow from what the plane was told: its inputs, its
 * directives, what the system answered, and the flows it had. Where a bucket of a rate is all that could tell, it is known
 * only which counters may have the datagram, and each counter is held between what is certain and what is possible.
 */
import { always, type Property } from '../../properties.ts';
import { droppedDatagrams } from '../../../core/metrics.ts';
import type { ListenerCounters } from '../../../core/metrics.ts';
import type { OracleKind } from '../oracle.ts';
import type { DropCounter } from '../traffic/parcel.ts';
import { followTraffic, type Losses } from '../traffic/traffic-book.ts';

const CAUSE: Property<'always'> = always('a lost datagram is counted for the cause of its loss');
const REASON: Property<'always'> = always('nothing is lost in a proxy without a cause');
const SPARED: Property<'always'> = always('what must be dropped does not go on');

const COUNTERS: readonly (DropCounter | 'loopsRefused' | 'headersRefused')[] = [
  'droppedInvalid',
  'droppedTruncated',
  'droppedNoBackend',
  'droppedShed',
  'droppedUnknownFlow',
  'droppedWqFull',
  'droppedSendError',
  'droppedTooBig',
  'droppedClosed',
  'droppedDenied',
  'droppedNewFlowRate',
  'droppedDatagramRate',
  'droppedAmplification',
  'droppedPortExhausted',
  'loopsRefused',
  'headersRefused',
];

export const LOSSES: OracleKind = {
  name: 'losses',
  begin: (verdicts, spec) => ({
    hearings: followTraffic(verdicts, spec, {
      spared: ({ drops }) => {
        verdicts.check(
          SPARED,
          false,
          () => `a datagram went on that counts as ${drops.join(' or ')}`,
        );
      },
      vanished: (input) => {
        verdicts.check(REASON, false, () => `${input.kind} came to nothing`);
      },
      counted: ({ process, counters }, losses) => {
        verdicts.check(SPARED, true, () => '');
        verdicts.check(REASON, true, () => '');
        const wrong = COUNTERS.find((counter) => !agrees(counters, losses, counter));
        verdicts.check(CAUSE, wrong === undefined, () => {
          return `process ${process}: ${wrong ?? ''} is ${counters[wrong ?? 'droppedShed']}, ${print(losses)}, of ${droppedDatagrams(counters)}`;
        });
      },
    }),
  }),
};

function agrees(
  counters: Readonly<ListenerCounters>,
  { certain, possible }: Losses,
  counter: DropCounter | 'loopsRefused' | 'headersRefused',
): boolean {
  const least = certain.get(counter) ?? 0;
  const isDrop = counter !== 'loopsRefused' && counter !== 'headersRefused';
  const most = least + (isDrop ? (possible.get(counter) ?? 0) : 0);
  return counters[counter] >= least && counters[counter] <= most;
}

function print({ certain, possible }: Losses): string {
  return JSON.stringify([Object.fromEntries(certain), Object.fromEntries(possible)]);
}
