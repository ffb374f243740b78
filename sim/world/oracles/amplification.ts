/** Until a client spoke twice, it gets no more reply bytes than the limits of its cluster allow for its first datagram. */
import { formatAddress } from '../../../core/address.ts';
import { alwaysAtMost, type Property } from '../../properties.ts';
import type { OracleKind } from '../oracle.ts';
import { followTraffic } from '../traffic/traffic-book.ts';

const BUDGET: Property<'alwaysAtMost'> = alwaysAtMost(
  'reply bytes to a client that spoke once are within its budget',
);

export const AMPLIFICATION: OracleKind = {
  name: 'amplification',
  begin: (verdicts, spec) => ({
    hearings: followTraffic(verdicts, spec, {
      sent: ({ line, toBackend }) => {
        const { terms, client, requests, firstBytes, repliedBytes } = line;
        const { factor, floor } = terms.amplification;
        if (toBackend || factor === 0 || requests !== 1) return;
        const budget = Math.max(floor, factor * firstBytes);
        verdicts.measure(BUDGET, repliedBytes, budget, () => formatAddress(client));
      },
    }),
  }),
};
