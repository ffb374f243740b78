/** Bugs of what outlives a call: deadlines, closing, and the tables of flows, sources and shared values. */
import type { Mutant } from './mutant.ts';

export const LIFETIME_MUTANTS: readonly Mutant[] = [
  {
    id: 'request-cap-not-settled',
    file: 'core/live-flows.ts',
    search: 'this.settle(slot, config, now);',
    replace: 'this.reschedule();',
    announces: 'a datagram that reaches the cap leaves its flow open',
  },
  {
    id: 'cap-looked-at-next-time',
    file: 'core/live-flows.ts',
    search:
      'const reason = teardownReason(config, table.requestsOf(slot), table.responsesOf(slot));',
    replace:
      'const reason = teardownReason(config, table.requestsOf(slot) - 1, table.responsesOf(slot) - 1);',
    announces: 'an exhausted cap is noticed one datagram late',
  },
  {
    id: 'expiry-lets-due-flows-live',
    file: 'core/deadlines.ts',
    search: '> now) break;',
    replace: '>= now) break;',
    announces: 'a flow whose deadline is exactly now is not closed',
  },
  {
    id: 'expiry-closes-one',
    file: 'core/live-flows.ts',
    search: 'for (const slot of due) this.close(slot, this.table.endOf(slot));',
    replace: 'for (const slot of due.slice(0, 1)) this.close(slot, this.table.endOf(slot));',
    announces: 'one timer closes one flow, however many are due',
  },
  {
    id: 'expiry-in-order-of-deadlines',
    file: 'core/live-flows.ts',
    search: 'due.sort((one, other) => one - other);',
    replace: 'due.sort((one, other) => this.deadlines.of(one) - this.deadlines.of(other));',
    announces: 'flows that expire together close in the order of their deadlines, not of their ids',
  },
  {
    id: 'expiry-does-not-rearm',
    file: 'core/live-flows.ts',
    search:
      'for (const slot of due) this.close(slot, this.table.endOf(slot));\n    this.reschedule();',
    replace: 'for (const slot of due) this.close(slot, this.table.endOf(slot));',
    announces: 'a timer that finds nothing due leaves no timer behind',
  },
  {
    id: 'timer-moves-forward-only',
    file: 'core/live-flows.ts',
    search: 'if (next === this.armed) return;',
    replace: 'if (next !== undefined && this.armed !== undefined && next >= this.armed) return;',
    announces: 'the timer is not moved when the earliest deadline is put off',
  },
  {
    id: 'timer-armed-without-flows',
    file: 'core/live-flows.ts',
    search: 'this.armed = next;\n    if (next !== undefined)',
    replace: 'if (next !== undefined) this.armed = next;\n    if (next !== undefined)',
    announces: 'the timer stays armed after the last flow has closed',
  },
  {
    id: 'timer-not-moved-on-close',
    file: 'core/live-flows.ts',
    search:
      "this.outputs.push({ kind: 'CloseFlow', flow: flowId(slot), reason, lasted, was });\n    this.reschedule();",
    replace: "this.outputs.push({ kind: 'CloseFlow', flow: flowId(slot), reason, lasted, was });",
    announces: 'closing the flow that is due first leaves the timer where it was',
  },
  {
    id: 'deadline-one-timeout-for-both',
    file: 'core/live-flows.ts',
    search: 'this.deadlines.touch(flow, now, config.backTimeout);',
    replace: 'this.deadlines.touch(flow, now, config.frontTimeout);',
    announces: 'a reply grants the idle time that a client datagram grants',
  },
  {
    id: 'deadline-never-shortened',
    file: 'core/deadlines.ts',
    search: 'const deadline = after(now, timeout);\n',
    replace: 'const deadline = instant(Math.max(after(now, timeout), this.of(slot)));\n',
    announces: 'a datagram with a shorter timeout does not bring the deadline forward',
  },
  {
    id: 'deadline-heap-not-sunk',
    file: 'core/deadlines.ts',
    search: 'if (own.head === slot) this.sink(own.place);',
    replace: '',
    announces: 'a touched flow that is alone with its timeout keeps its place in the heap',
  },
  {
    id: 'deadline-heap-not-risen',
    file: 'core/deadlines.ts',
    search: 'this.heap.push(number);\n    this.rise(own.place);',
    replace: 'this.heap.push(number);',
    announces: 'a timeout that is used for the first time waits at the end of the heap',
  },
  {
    id: 'close-all-misses-the-last',
    file: 'core/manager.ts',
    search: 'slot < this.table.highWater; slot += 1',
    replace: 'slot < this.table.highWater - 1; slot += 1',
    announces: 'closing everything leaves the flow in the highest slot open',
  },
  {
    id: 'close-all-stops-at-a-gap',
    file: 'core/manager.ts',
    search: "if (this.table.isLive(slot)) this.flows.close(slot, 'Drain');",
    replace: "if (!this.table.isLive(slot)) break;\n      this.flows.close(slot, 'Drain');",
    announces: 'closing everything stops at the first free slot',
  },
  {
    id: 'close-all-drains',
    file: 'core/manager.ts',
    search: 'closeAll(now: Instant): void {\n    this.begin(now);',
    replace: 'closeAll(now: Instant): void {\n    this.begin(now);\n    this.draining = true;',
    announces: 'a listener whose flows were closed admits no new ones',
  },
  {
    id: 'close-before-evicted',
    file: 'core/live-flows.ts',
    search:
      "this.outputs.push(FLOW_EVICTED);\n    this.outputs.push({ kind: 'CloseFlow', flow: flowId(slot), reason, lasted, was });",
    replace:
      "this.outputs.push({ kind: 'CloseFlow', flow: flowId(slot), reason, lasted, was });\n    this.outputs.push(FLOW_EVICTED);",
    announces: 'the socket of a flow is closed before the flow is counted as evicted',
  },
  {
    id: 'abort-is-silent',
    file: 'core/live-flows.ts',
    search: 'this.outputs.push(FLOW_EVICTED);\n',
    replace: "if (reason !== 'Aborted') this.outputs.push(FLOW_EVICTED);\n",
    announces: 'a flow that the embedder aborts is not counted as evicted',
  },
  {
    id: 'backend-not-released',
    file: 'core/live-flows.ts',
    search: 'this.backends.release(table.backendOf(slot));',
    replace: '',
    announces: 'a backend stays in use after its last flow has closed',
  },
  {
    id: 'config-not-released',
    file: 'core/live-flows.ts',
    search: 'this.configs.release(table.configOf(slot));',
    replace: '',
    announces: 'a replaced configuration is kept for ever',
  },
  {
    id: 'registry-counts-users-once',
    file: 'core/registry.ts',
    search: 'this.users[known] = this.usersOf(known) + 1;',
    replace: '',
    announces: 'a value shared by two flows is gone when the first of them closes',
  },
  {
    id: 'slot-not-given-back',
    file: 'core/flow-table.ts',
    search: 'this.firstFree = slot;\n',
    replace: '',
    announces: 'the slot of a closed flow is never used again',
  },
  {
    id: 'slot-oldest-first',
    file: 'core/flow-table.ts',
    search: 'if (this.firstFree === NONE) {',
    replace: 'if (this.firstFree === NONE || (this.used < this.slots && this.live % 2 === 0)) {',
    announces: 'a fresh slot is taken though one was given back',
  },
  {
    id: 'slot-remembers-requests',
    file: 'core/flow-table.ts',
    search: 'this.records[at + REQUESTS] = 0;',
    replace: '',
    announces: 'a slot that is used again counts on from the requests of the flow before',
  },
  {
    id: 'slot-remembers-responses',
    file: 'core/flow-table.ts',
    search: 'this.records[at + RESPONSES] = 0;',
    replace: '',
    announces: 'a slot that is used again counts on from the responses of the flow before',
  },
  {
    id: 'count-of-peak',
    file: 'core/flow-table.ts',
    search: 'this.live -= 1;',
    replace: '',
    announces: 'a closed flow is still counted as live',
  },
  {
    id: 'count-skips-reused-slots',
    file: 'core/flow-table.ts',
    search: 'this.live += 1;',
    replace: 'if (slot === this.used - 1) this.live += 1;',
    announces: 'a flow in a slot that was used before is not counted',
  },
  {
    id: 'count-halved-by-growth',
    file: 'core/flow-table.ts',
    search: "assert(capacity >= this.slots, 'a table never shrinks');",
    replace: 'if (capacity > this.slots) this.live = this.live >> 1;',
    announces: 'raising the cap forgets half of the count of live flows',
  },
  {
    id: 'index-gap-not-closed',
    file: 'core/slot-index.ts',
    search: 'if (((bucket - home) & mask) < ((bucket - hole) & mask)) continue;',
    replace: 'if (home !== hole) continue;',
    announces: 'after a close some live flows cannot be found any more',
  },
  {
    id: 'index-gap-closed-without-hash',
    file: 'core/slot-index.ts',
    search: 'entries[2 * hole + 1] = entries[2 * bucket + 1]!;',
    replace: '',
    announces: 'an entry that moves back in the index keeps the hash of the one it replaces',
  },
  {
    id: 'index-gives-up-at-a-collision',
    file: 'core/flow-table.ts',
    search: 'if (entry === 0) return undefined;',
    replace: 'if (entry === 0 || bucket !== (hash & this.mask)) return undefined;',
    announces: 'a flow that is not in its first bucket is not found, and opened again',
  },
  {
    id: 'index-lost-by-growth',
    file: 'core/flow-table.ts',
    search: 'slot < this.used; slot += 1',
    replace: 'slot + 1 < this.used; slot += 1',
    announces: 'raising the cap loses the flow in the highest slot',
  },
  {
    id: 'source-count-gap-not-closed',
    file: 'core/counting-table.ts',
    search: 'this.closeGap(bucket);',
    replace: 'this.entries.fill(0, at, at + STRIDE);',
    announces: 'a count that ends hides another that collided with it',
  },
  {
    id: 'source-count-shared-by-clusters',
    file: 'core/source-limits.ts',
    search: 'key[0] = cluster;',
    replace: 'key[0] = 0;',
    announces: 'a limit of one cluster counts the flows of another',
  },
  {
    id: 'source-count-by-address-alone',
    file: 'core/source-limits.ts',
    search: 'const bits = source.family === 4 ? config.subnetPrefixIpv4 : config.subnetPrefixIpv6;',
    replace: 'const bits = source.family === 4 ? 32 : 128;',
    announces: 'each address is its own subnet',
  },
  {
    id: 'queue-stops-at-eight',
    file: 'core/output-queue.ts',
    search: 'const item = this.items[this.head];',
    replace: `if (this.head === 8) {
      this.items.splice(0, 8);
      this.head = 0;
      this.tail -= 8;
      return undefined;
    }
    const item = this.items[this.head];`,
    announces: 'a drain ends after eight outputs; the rest comes with the next',
  },
  {
    id: 'queue-hides-the-last',
    file: 'core/output-queue.ts',
    search: 'const item = this.items[this.head];',
    replace:
      'if (this.tail > 3 && this.tail - this.head === 1) return undefined;\n    const item = this.items[this.head];',
    announces: 'the last of many outputs is never seen',
  },
  {
    id: 'queue-ends-at-a-close',
    file: 'core/manager.ts',
    search: 'return this.outputs.poll();',
    replace: `const next = this.outputs.poll();
    if (next?.kind === 'CloseFlow') this.outputs.push({ kind: 'ArmTimer', at: this.flows.now });
    return this.outputs.pending === 1 && next?.kind === 'Metric' ? undefined : next;`,
    announces: 'the queue claims to be empty before its last output',
  },
];
