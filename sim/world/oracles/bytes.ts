/**
 * Bytes pass a proxy unchanged, once, and in order: whatever its plane hands to the kernel is what the kernel had handed to
 * it, for the first time, or is a datagram that the kernel gave back. What networks do before and behind is not its fault.
 */
import { always, type Property } from '../../properties.ts';
import type { OracleKind } from '../oracle.ts';
import { followTraffic } from '../traffic/traffic-book.ts';

const UNCHANGED: Property<'always'> = always('bytes pass a proxy unchanged and in order');
const ONCE: Property<'always'> = always('a datagram passes a proxy at most once');

export const BYTES: OracleKind = {
  name: 'bytes',
  begin: (verdicts, spec) => ({
    hearings: followTraffic(verdicts, spec, {
      sent: () => {
        verdicts.check(UNCHANGED, true, () => '');
        verdicts.check(ONCE, true, () => '');
      },
      astray: ({ kind, payload }, why) => {
        const text = (): string =>
          `${kind} of ${payload.length} bytes: ${payload.subarray(0, 16).join(' ')}`;
        verdicts.check(UNCHANGED, why !== 'bytes', text);
        verdicts.check(ONCE, why !== 'twice', text);
      },
    }),
  }),
};
