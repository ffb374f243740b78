/**
 * A live flow stays on its backend: its datagrams leave on its own socket, and it gets another backend only where the
 * configuration says so for one that is down, gone or drained. Flows begin and end with their sockets.
 */
import { formatAddress, sameAddress } from '../../../core/address.ts';
import { always, sometimes, type Property } from '../../properties.ts';
import type { OracleKind } from '../oracle.ts';
import { followTraffic } from '../traffic/traffic-book.ts';

const STAYS: Property<'always'> = always('a live flow stays on a backend that it may keep');
const OWN: Property<'always'> = always('a client datagram leaves on the socket of its flow');
const MOVES: Property<'sometimes'> = sometimes('a flow leaves a backend that it lost');

export const STICKY_BACKEND: OracleKind = {
  name: 'sticky-backend',
  begin: (verdicts, spec) => ({
    hearings: followTraffic(verdicts, spec, {
      opened: (line, how, from, expected) => {
        if (from === undefined) return;
        const who = (): string =>
          `the flow of ${formatAddress(line.client)} goes from ${formatAddress(from.backend)} to ${formatAddress(line.backend)}`;
        // A new socket for want of a way out of the old one changes nothing else.
        const isRenewed = how === 'renewed' && sameAddress(line.backend, from.backend);
        const isLost = how === 'moved' && expected?.fate !== 'keep';
        verdicts.check(STAYS, isRenewed || isLost, who);
        if (!isLost) return;
        verdicts.see(MOVES);
      },
      sent: ({ toBackend }) => {
        if (toBackend) verdicts.check(OWN, true, () => '');
      },
      astray: (output, why) => {
        verdicts.check(OWN, output.kind === 'SendToClient' || why !== 'line', () => {
          return 'a client datagram leaves on a socket that is not its flow’s';
        });
      },
    }),
  }),
};
