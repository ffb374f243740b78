/** What the harness checks after every step, and what a sweep must have seen. One name each, for reports and replays. */
import { always, sometimes, type Property } from '../properties.ts';

type Always = Property<'always'>;
type Sometimes = Property<'sometimes'>;

export const NO_EXCEPTION: Always = always('no call throws');
export const AS_MODELLED: Always = always('outputs are exactly what the shadow model predicts');
export const DRAINED: Always = always('the output queue is empty after a drain');
export const WITHIN_CAPS: Always = always('live flows never exceed the highest cap there was');
export const BALANCED: Always = always('created minus evicted is the number of live flows');
export const ARMED: Always = always('the timer is armed exactly while there are flows');
export const ADVANCES: Always = always('after an expiry the next deadline lies ahead');
export const REARMS: Always = always('an expiry with live flows left arms the timer again');
export const STICKY: Always = always(
  'every datagram of a flow goes to the backend it was opened on',
);
export const OWN_CLIENT: Always = always('a reply goes to the client that opened the flow');
export const CAPPED: Always = always('a flow carries no more than its caps allow');
export const HEADED: Always = always('the PROXY header is on the datagrams that want it');
export const INTACT: Always = always('payloads arrive unchanged');
export const ELIGIBLE: Always = always('a new flow gets an eligible backend');
export const KEYED: Always = always('backends are chosen by the affinity key of the client');
export const SERIAL: Always = always('a flow keeps its serial, and no other ever has it');
export const FOUND: Always = always('flows are found by their serial, and by their backend');
export const BY_FATE: Always = always('a flow is served by a backend that its fate allows');
export const REBOUND_IN_ORDER: Always = always('a rebind is told, opened elsewhere and served');
export const WITHIN_CREDIT: Always = always(
  'a client that spoke once is answered within its credit',
);
export const WITHIN_RATE: Always = always('a flow forwards no more than its burst and rate');
export const IN_GRACE: Always = always('a late reply comes back within the grace');
export const ONE_WAY: Always = always('a flow that has all its replies takes no more requests');
export const REASONED: Always = always('a flow closes for a reason that its counts give');
export const KEPT_OUT: Always = always('nothing of a denied client is forwarded');
export const EMPTY_KNOWN: Always = always(
  'an empty datagram goes through live flows alone, where that is wanted',
);
export const REFUSED_OUT: Always = always('a refused client opens no flow');
export const ASKED_ONCE: Always = always('the view is asked once, and only what it has to decide');

export const FINALLY_EMPTY: Always = always('in the end every flow drains away');

export const COUNTED: Always = always('I1: the flow count equals the live slots');
export const INDEXED: Always = always('I2/I3: each key leads to its own flow');
export const REGISTERED: Always = always('I5: flows and the values they use agree');
export const EARLIEST: Always = always('I6: the timer is armed at the earliest deadline');
export const EXHAUSTED: Always = always('I7: no live flow has an exhausted cap');
export const HIGH_WATER: Always = always('I8: no more flows than any cap allowed');
export const RECOUNTED: Always = always('I13: source counters equal a recount');

export const LINGERING: Always = always('I14: who lingers has a reason to');
export const NUMBERED: Always = always('I15: live flows have serials of their own');
export const CREDITED: Always = always('I16: a flow has no more credit than its terms gave');

export const SLOT_REUSED: Sometimes = sometimes('a slot is used again by another client');
export const STALE_ID: Sometimes = sometimes('a reply meets a flow that is gone');
export const MASS_EXPIRY: Sometimes = sometimes('several flows expire at once');
export const EARLY_TIMER: Sometimes = sometimes('a timer fires early and finds nothing due');
export const FAIL_OPEN: Sometimes = sometimes('every backend is down and one is chosen anyway');
export const NOBODY_LEFT: Sometimes = sometimes('no backend can be chosen');
export const SHED_AT_CAP: Sometimes = sometimes('a new flow is refused at the cap');
export const SHED_DRAINING: Sometimes = sometimes('a new flow is refused while draining');
export const OVERSIZE: Sometimes = sometimes('an oversize datagram is dropped');
export const RESPONSES_CAP: Sometimes = sometimes('the responses cap closes a flow');
export const REQUESTS_CAP: Sometimes = sometimes('the requests cap closes a flow');
export const SHRUNK: Sometimes = sometimes('the cap is below the number of live flows');
export const OLD_CONTRACT: Sometimes = sometimes(
  'a live flow keeps a configuration that was replaced',
);
export const HEADER_REFUSED: Sometimes = sometimes('a client’s own PROXY header is refused');
export const LOST: Sometimes = sometimes('a flow closes because its backend is lost');
export const KILLED: Sometimes = sometimes('a flow is killed by its serial');
export const DENIED: Sometimes = sometimes('a denied client is dropped');
export const TOO_FAST: Sometimes = sometimes('a datagram exceeds a rate');
export const TOO_MUCH: Sometimes = sometimes('a reply exceeds the credit of its client');
export const NO_PORT: Sometimes = sometimes('a new flow finds no port');
export const REBOUND: Sometimes = sometimes('a flow is rebound');
export const NOWHERE_TO_GO: Sometimes = sometimes('a flow that is to be rebound finds no backend');
export const STAYED: Sometimes = sometimes('a flow that is to be rebound finds its own backend');
export const LOOP_REFUSED: Sometimes = sometimes('a loop is refused');
export const EMPTY_FORWARDED: Sometimes = sometimes('an empty datagram is forwarded');
export const LATE_REPLY: Sometimes = sometimes('a reply comes after all that were awaited');
export const LINGERED: Sometimes = sometimes('a reply comes after the last request');
