/**
 * Mutants written from the specification by somebody who had not read how the simulator works or what it checks: each is a
 * reading of one paragraph that a programmer could have had. `announces` ends with the inputs that show it.
 */
import type { Mutant } from './mutant.ts';

export const BLIND_MUTANTS: readonly Mutant[] = [
  // Which condition ends a client datagram (spec §2.2).
  {
    id: 'blind-cap-before-source-limit',
    file: 'core/manager.ts',
    search: 'if (this.sources.reached(this.config, src))',
    replace: 'if (this.table.count < this.cap && this.sources.reached(this.config, src))',
    announces:
      'where the cap and the source limit both refuse, the cap is blamed: with max_flows 1 and one flow per IP, ' +
      'A:1000 then A:1001 reports FlowShed, not FlowShedSourceLimit',
  },
  {
    id: 'blind-selects-before-limits',
    file: 'core/manager.ts',
    search: "if (this.draining) return this.drop('Shed');",
    replace:
      "if (backends.select(undefined, now) === undefined) return this.drop('NoBackend');\n" +
      "    if (this.draining) return this.drop('Shed');",
    announces:
      'a backend is asked for before the limits and again after: a new client while draining, with no backend, is NoBackend ' +
      'instead of Shed, and round-robin over two gives clients A and B the same backend',
  },
  // Caps and what a flow captured (spec §2.5, §2.6).
  {
    id: 'blind-responses-cap-per-request',
    file: 'core/flow.ts',
    search: '(config.responsesPerRequest ? responses * requestsSeen : responses)',
    replace: 'responses * requestsSeen',
    announces:
      'the responses cap grows with the requests: with responses 1, two datagrams of A and then one reply leave the flow open',
  },
  {
    id: 'blind-caps-not-captured',
    file: 'core/live-flows.ts',
    search: 'teardownReason(config,',
    replace: 'teardownReason([...this.configs.numbers.keys()].at(-1),',
    announces:
      'live flows obey the caps of the newest configuration: A without caps, SetCluster with responses 1, one reply to A ' +
      'closes the flow',
  },
  // One deadline, overwritten by either direction (spec §2.10).
  {
    id: 'blind-reply-never-shortens',
    file: 'core/live-flows.ts',
    search: 'this.deadlines.touch(flow, now, config.backTimeout);',
    replace:
      'if (now + config.backTimeout > this.deadlines.of(flow)) {\n' +
      '      this.deadlines.touch(flow, now, config.backTimeout);\n' +
      '    }',
    announces:
      'a reply only ever prolongs a flow: with front 60 s and back 5 s, A at 0 and a reply at 1 leave the deadline at 60, not 6',
  },
  // Drain is a latch (spec §2.6).
  {
    id: 'blind-set-cluster-ends-draining',
    file: 'core/manager.ts',
    search: 'this.config = event.config;',
    replace: 'this.config = event.config;\n        this.draining = false;',
    announces:
      'a new configuration resumes admission: Drain, SetCluster, then a new client is admitted',
  },
  // The order of outputs (spec §2.5, §2.7, §2.11).
  {
    id: 'blind-arms-before-close-is-told',
    file: 'core/live-flows.ts',
    search: 'this.outputs.push(FLOW_EVICTED);',
    replace: 'this.reschedule();\n    this.outputs.push(FLOW_EVICTED);',
    announces:
      'ArmTimer comes before the FlowEvicted and CloseFlow that moved it: A at 0, B at 1, abort of A',
  },
  {
    id: 'blind-due-sorted-as-text',
    file: 'core/live-flows.ts',
    search: 'due.sort((one, other) => one - other);',
    replace: 'due.sort();',
    announces:
      'flows that expire together close in the order of their ids as text, 10 before 2: eleven clients at 0, the timer at 30',
  },
  // Timers (spec §2.7, §2.8).
  {
    id: 'blind-early-expiry-ignored',
    file: 'core/live-flows.ts',
    search: 'this.armed = undefined;',
    replace: 'if (this.armed !== undefined && this.armed <= now) this.armed = undefined;',
    announces:
      'a timer that fires early is not armed again, so the flow is never reaped: A at 0, the timer at 29.95 outputs nothing',
  },
  {
    id: 'blind-lone-refresh-keeps-rank',
    file: 'core/deadlines.ts',
    search: 'if (own.head === slot) this.sink(own.place);',
    replace: '',
    announces:
      'the only flow of a timeout stays first in line after a refresh: A with 30 s at 0, SetCluster with 35 s, B at 0, ' +
      'A again at 20 arms 50, not 35',
  },
  // Limits per source (spec §2.13).
  {
    id: 'blind-subnet-limit-or-ip-limit',
    file: 'core/source-limits.ts',
    search: '(config.maxFlowsPerSubnet !== 0 &&',
    replace: '(config.maxFlowsPerIp === 0 && config.maxFlowsPerSubnet !== 0 &&',
    announces:
      'the subnet limit counts only where there is no limit per IP: with 5 per IP and 1 per subnet, 10.0.0.1 and then ' +
      '10.0.0.2 are both admitted',
  },
  {
    id: 'blind-sources-counted-across-clusters',
    file: 'core/source-limits.ts',
    search: 'key[0] = cluster;',
    replace: 'key[0] = 0;',
    announces:
      'flows of a source in one cluster count against its limit in another: with 2 per IP, A:1 in cluster one, SetCluster ' +
      'to two, A:2 and A:3, of which A:3 is refused',
  },
  // Who may be chosen, and who is (spec §3).
  {
    id: 'blind-fail-open-primaries-only',
    file: 'core/balancing/candidates.ts',
    search: "({ state }) => state === 'active'",
    replace: "({ state, backend }) => state === 'active' && !backend.backup",
    announces:
      'fail-open leaves the backups out: with one primary and one backup, both unhealthy, two new clients under round-robin ' +
      'both go to the primary',
  },
  {
    id: 'blind-round-robin-cursor-runs-on',
    file: 'core/balancing/round-robin.ts',
    search: 'this.cursor = (this.cursor + 1) % count;',
    replace: 'this.cursor += 1;',
    announces:
      'the cursor is not brought back to the start of the list: three new clients over three backends, the last backend goes ' +
      'down, and the fourth client gets the second backend, not the first',
  },
  {
    id: 'blind-hrw-raw-weight',
    file: 'core/balancing/rendezvous.ts',
    search: 'effectiveWeight(candidate)',
    replace: 'candidate.weight',
    announces:
      'HRW takes weight 0 as it is, not as 1: over two backends of weight 0 every client goes to the first',
  },
  {
    id: 'blind-maglev-probe-restarts',
    file: 'core/balancing/maglev.ts',
    search: 'this.firstServed(start, this.table.length)',
    replace: 'this.firstServed(start, start + 1)',
    announces:
      'the search for a slot in service does not go on from the key but from slot 0: of three backends one is down, and all ' +
      'of its clients go to one of the other two',
  },
  // PROXY protocol (spec §4).
  {
    id: 'blind-every-datagram-implies-header',
    file: 'core/live-flows.ts',
    search: 'this.table.setHeaderDue(slot, config.sendProxyProtocol)',
    replace:
      'this.table.setHeaderDue(slot, config.sendProxyProtocol || config.proxyProtocolEveryDatagram)',
    announces:
      'proxy_protocol_every_datagram sends headers without send_proxy_protocol: the first datagram of A carries a prefix',
  },
  // The flow table: deletion, reuse of slots, growth (spec §1.8, §2.6).
  {
    id: 'blind-deletion-ignores-wrap',
    file: 'core/slot-index.ts',
    search: '((bucket - home) & mask) < ((bucket - hole) & mask)',
    replace: 'home > hole',
    announces:
      'deletion loses flows whose run of buckets wraps round the end: eight clients in a table of eight, close one and send ' +
      'again from the rest; under some table seeds one of them is admitted a second time',
  },
  {
    id: 'blind-reused-slot-keeps-responses',
    file: 'core/flow-table.ts',
    search: 'this.records[at + RESPONSES] = 0;',
    replace: '',
    announces:
      'a flow inherits the responses of the one before it in its slot: with responses 2, A gets one reply and is aborted, ' +
      'B takes the slot and its first reply closes it',
  },
  {
    id: 'blind-growth-forgets-behind-holes',
    file: 'core/flow-table.ts',
    search: 'slot < this.used; slot += 1',
    replace: 'slot < this.live; slot += 1',
    announces:
      'growth re-enters as many slots as there are flows, not all that were used: A and B, abort of A, SetMaxFlows above ' +
      'the capacity, and B is admitted a second time',
  },
];
