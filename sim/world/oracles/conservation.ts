/**
 * Every datagram ends exactly once: what a proxy received it forwarded, returned, dropped for a counted reason, or still holds;
 * what its counters say its kernel took is what its kernel took, and what its kernel handed over is what they say it received.
 */
import { unaccountedDatagrams } from '../../../core/metrics.ts';
import { always, type Property } from '../../properties.ts';
import type { OracleKind } from '../oracle.ts';

const ENDS_ONCE: Property<'always'> = always('every datagram ends exactly once');
const HEARS_ALL: Property<'always'> = always('a proxy counts what its kernel handed over');
const SENDS_ALL: Property<'always'> = always('a proxy counts what its kernel took');

export const CONSERVATION: OracleKind = {
  name: 'conservation',
  begin: (verdicts) => ({
    hearings: {
      Counted: ({ process, counters, waiting, kernelIn, kernelOut }) => {
        const who = `process ${process}`;
        const held = unaccountedDatagrams(counters);
        verdicts.check(ENDS_ONCE, held === waiting, () => {
          return `${who} has not accounted for ${held} datagrams, and ${waiting} wait`;
        });
        const received = counters.clientReceived + counters.backendReceived;
        verdicts.check(HEARS_ALL, received === kernelIn.taken, () => {
          return `${who} counts ${received} datagrams, and took ${kernelIn.taken}`;
        });
        const sent = counters.forwarded + counters.returned;
        const { accepted, failedLate } = kernelOut;
        const late = counters.sendFailedLate;
        verdicts.check(SENDS_ALL, sent === accepted && late === failedLate, () => {
          return `${who} counts ${sent} sent and ${late} failed late; its kernel took ${accepted}, and ${failedLate} failed`;
        });
      },
    },
  }),
};
