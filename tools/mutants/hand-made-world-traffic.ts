/**
 * Bugs of what becomes of datagrams in a whole process: who gets them, whether all of them are accounted for, what a queue or
 * a kernel that says no does to them. Each is for an oracle of sim/world/oracles/.
 */
import type { Mutant } from './mutant.ts';

export const WORLD_TRAFFIC_MUTANTS: readonly Mutant[] = [
  // For `replies`.
  {
    id: 'reply-to-the-neighbour',
    file: 'core/live-flows.ts',
    search: 'dst: this.table.clientOf(flow),',
    replace: 'dst: this.table.clientOf(flow > 2 && this.table.isLive(flow - 1) ? flow - 1 : flow),',
    announces: 'some replies go to the client of the flow in the slot before',
  },
  {
    id: 'reply-from-any-address',
    file: 'core/live-flows.ts',
    search: 'from: this.table.localOf(flow),',
    replace: 'from: undefined,',
    announces: 'a wildcard listener answers from whichever address the kernel likes',
  },
  {
    id: 'queued-reply-to-the-first',
    file: 'core/egress.ts',
    search: 'const { dst, from, payload } = next;',
    replace: 'const { from, payload } = next;\n      const dst = (this.firstDst ??= next.dst);',
    announces: 'replies that waited for room all go to the client of the first that ever did',
  },
  {
    id: 'clients-of-one-host-merged',
    file: 'core/manager.ts',
    search: 'const slot = this.table.find(hash, src, local);',
    replace:
      'let slot = this.table.find(hash, src, local);\n    for (let one = 0; one < this.table.highWater; one += 1) if (this.table.isLive(one) && !this.table.isLingering(one) && this.table.clientOf(one).a === src.a) slot ??= one;',
    announces: 'sockets of one host share a flow, and the replies to both go to the first',
  },
  // For `conservation`.
  {
    id: 'failed-send-counts-as-forwarded',
    file: 'core/egress.ts',
    search: "if (failure.direction === 'to-backend') tally.sentToBackends -= 1;",
    replace: "if (failure.direction === 'to-backend') tally.sentToBackends -= 0;",
    announces: 'a datagram that the kernel refused counts as forwarded and as dropped',
  },
  {
    id: 'unsent-counts-as-forwarded',
    file: 'core/data-plane.ts',
    search: 'listener.sentToBackends -= unsent;',
    replace: '',
    announces: 'what waited for a socket that did not open counts as forwarded',
  },
  {
    id: 'late-failure-not-counted',
    file: 'core/plane-listeners.ts',
    search: 'counters.sendFailedLate += 1;',
    replace: '',
    announces: 'sends that failed after the flush are counted nowhere',
  },
  {
    id: 'counts-lost-with-the-listener',
    file: 'core/plane-listeners.ts',
    search: 'addCounters(this.retired, listener.counters);',
    replace: '',
    announces: 'what a listener counted is forgotten when it is removed',
  },
  // For `sticky-backend`.
  {
    id: 'pinned-flow-moves',
    file: 'core/fates.ts',
    search: "return policy === 'pin' ? 'keep' : policy;",
    replace: "return policy === 'pin' ? 'rebind' : policy;",
    announces: 'flows leave a backend that is down or gone although they are pinned',
  },
  {
    id: 'drain-moves-flows-at-once',
    file: 'core/balancing/candidates.ts',
    search: "if (entry.state === 'drained') return 'drained';",
    replace: "if (entry.state === 'drained' || entry.state === 'draining') return 'drained';",
    announces: 'flows on a draining backend do not get the time they were promised',
  },
  {
    id: 'flow-moves-while-all-are-down',
    file: 'core/balancing/candidates.ts',
    search: "return entry.healthy || this.chosenTier === 'fail-open' ? undefined : 'down';",
    replace: "return entry.healthy ? undefined : 'down';",
    announces: 'when all backends are down, flows are moved from one to the other',
  },
  {
    id: 'removal-decides-for-down',
    file: 'core/fates.ts',
    search: "case 'down':\n      return fateBy(policies.onBackendDown);",
    replace: "case 'down':\n      return fateBy(policies.onBackendRemoved);",
    announces: 'a backend that is down loses its flows as one that was removed does',
  },
  // For `proxy-headers`.
  {
    id: 'header-sides-swapped',
    file: 'core/live-flows.ts',
    search: 'return dgramHeader(this.table.clientOf(slot), backend.address);',
    replace: 'return dgramHeader(backend.address, this.table.clientOf(slot));',
    announces: 'the PROXY header names the backend as the client',
  },
  {
    id: 'no-header-after-a-rebind',
    file: 'core/live-flows.ts',
    search:
      'table.setHeaderDue(slot, config.sendProxyProtocol);\n    this.outputs.push(FLOW_REBOUND);',
    replace: 'this.outputs.push(FLOW_REBOUND);',
    announces: 'the next backend of a flow never hears who its client is',
  },
  {
    id: 'queued-datagram-loses-its-header',
    file: 'core/egress-queue.ts',
    search: 'target.entries.push({ header: header?.slice(), payload',
    replace: 'target.entries.push({ header: undefined, payload',
    announces: 'a datagram that waited for room goes out without its PROXY header',
  },
  {
    id: 'header-on-every-datagram-but',
    file: 'core/live-flows.ts',
    search: 'if (!config.proxyProtocolEveryDatagram) this.table.setHeaderDue(slot, false);',
    replace: 'if (config.proxyProtocolEveryDatagram) this.table.setHeaderDue(slot, false);',
    announces: 'the first and every datagram have changed places',
  },
  // For `bytes`.
  {
    id: 'queue-keeps-a-view',
    file: 'core/egress-queue.ts',
    search: 'payload: new Uint8Array(payload), dst, from',
    replace: 'payload, dst, from',
    announces: 'what waits for room goes out with the bytes of a later datagram',
  },
  {
    id: 'queue-backwards',
    file: 'core/egress-queue.ts',
    search: 'const entry = queue?.entries[queue.offered];',
    replace: 'const entry = queue?.entries.at(-1 - queue.offered);',
    announces: 'what waited longest goes last',
  },
  {
    id: 'queue-sends-its-last-again',
    file: 'core/egress-queue.ts',
    search: 'this.forget(queue, queue.entries.splice(0, queue.offered));',
    replace: 'this.forget(queue, queue.entries.splice(0, Math.max(1, queue.offered - 1)));',
    announces: 'of several datagrams that waited, the last is sent twice',
  },
  {
    id: 'fresh-overtakes-one-that-waits',
    file: 'core/egress.ts',
    search: 'if (this.flows.size > 0 && this.flows.has(socket)) {',
    replace:
      'if (this.flows.size > 0 && this.flows.has(socket) && this.flows.lengthOf(socket) > 1) {',
    announces: 'a new datagram goes past one that waits',
  },
  // For `losses`.
  {
    id: 'denied-counts-as-invalid',
    file: 'core/manager.ts',
    search: "if (backends.denies?.(src) === true) return this.drop('Denied');",
    replace: "if (backends.denies?.(src) === true) return this.drop('Invalid');",
    announces: 'a source kept out is counted as invalid',
  },
  {
    id: 'no-port-counts-as-unknown-flow',
    file: 'core/data-plane.ts',
    search: "if (verdict.reason === 'PortExhausted') counters.droppedPortExhausted += unsent;",
    replace: "if (verdict.reason === 'Loop') counters.droppedPortExhausted += unsent;",
    announces: 'what had no local port is counted as of an unknown flow',
  },
  {
    id: 'too-big-counts-as-send-error',
    file: 'core/error-policy.ts',
    search: "['EMSGSIZE', { ...OTHER, drop: 'droppedTooBig' }],",
    replace: "['EMSGSIZE', OTHER],",
    announces: 'what the path does not take is counted as a send that failed',
  },
  {
    id: 'room-behind-a-refusal-unused',
    file: 'core/egress.ts',
    search: 'if (this.goesAlong(tally, failure)) return;',
    replace: '',
    announces:
      'what follows a refused datagram waits, or is dropped, for want of room that is there',
  },
  {
    id: 'closed-counts-as-full',
    file: 'core/egress.ts',
    search: 'tally.counters.droppedClosed += this.flows.discard(socket);',
    replace: 'tally.counters.droppedWqFull += this.flows.discard(socket);',
    announces: 'what waited for a socket that closed is counted as over the bound of a queue',
  },
  {
    id: 'source-limit-not-asked',
    file: 'core/manager.ts',
    search: 'if (this.sources.reached(this.config, src)) return this.shed(FLOW_SHED_SOURCE_LIMIT);',
    replace: '',
    announces: 'limits on the flows of a source are not kept',
  },
  // For `amplification`, beside those of hand-made-terms.ts.
  {
    id: 'credit-by-the-latest-terms',
    file: 'core/amplification.ts',
    search: 'Math.max(floor, factor * requestBytes)',
    replace: 'Math.max(floor, (factor + 1) * requestBytes)',
    announces: 'the factor is one more than was configured',
  },
  {
    id: 'credit-refilled-by-each-reply',
    file: 'core/amplification.ts',
    search: 'return credit === VALIDATED ? VALIDATED : credit - replyBytes;',
    replace: 'return credit;',
    announces: 'each reply may be as large as all may be together',
  },
  {
    id: 'credit-of-half-a-reply',
    file: 'core/amplification.ts',
    search: 'return credit === VALIDATED || replyBytes <= credit;',
    replace: 'return credit === VALIDATED || replyBytes / 2 <= credit;',
    announces: 'a reply may be twice as large as what is left',
  },
  // For `closed-backends`.
  {
    id: 'closing-backends-are-available',
    file: 'core/balancing/candidates.ts',
    search: 'entry.state = state;',
    replace: '',
    announces: 'backends that are drained or disabled go on getting flows',
  },
  {
    id: 'state-not-directed',
    file: 'core/control-plane.ts',
    search: 'this.direct(state);\n    this.watch.closingChanged',
    replace: 'this.watch.closingChanged',
    announces: 'data planes are not told what an operator wants of a backend',
  },
  {
    id: 'removed-backends-stay',
    file: 'core/clusters.ts',
    search: 'known.backends.setBackends(own);',
    replace: 'if (own.length > 2) known.backends.setBackends(own);',
    announces: 'a list of backends that shrank is not adopted',
  },
  {
    id: 'fail-open-to-everybody',
    file: 'core/balancing/candidates.ts',
    search: "this.failOpen ? this.entries.filter(({ state }) => state === 'active') : [];",
    replace: 'this.failOpen ? this.entries : [];',
    announces: 'when nobody is available, those that an operator closed are tried too',
  },
];
