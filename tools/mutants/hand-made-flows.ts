/** Bugs of the flow machine itself: admission, forwarding, caps, timers, closing. Those that history knows come first. */
import type { Mutant } from './mutant.ts';

export const FLOW_MUTANTS: readonly Mutant[] = [
  {
    id: 'merged-sockets',
    file: 'core/manager.ts',
    search: 'const slot = this.table.find(hash, src, local);',
    replace: `let slot = this.table.find(hash, src, local);
    for (let other = 0; slot === undefined && other < this.table.highWater; other += 1) {
      if (this.table.isLive(other) && this.table.clientOf(other).a === src.a) slot = other;
    }`,
    announces: 'sockets of one client share a flow, and replies go to the first of them',
  },
  {
    id: 'lost-wake-up',
    file: 'core/live-flows.ts',
    search: 'this.armed = undefined;\n    const due',
    replace: 'const due',
    announces: 'a timer that fires early is not armed again, because the deadline did not change',
  },
  {
    id: 'stale-deadline-closes',
    file: 'core/live-flows.ts',
    search: 'this.deadlines.touch(slot, now, config.frontTimeout);',
    replace: '',
    announces: 'a flow closes at the deadline of its first datagram, though others came since',
  },
  {
    id: 'stale-deadline-after-reply',
    file: 'core/live-flows.ts',
    search: 'this.deadlines.touch(flow, now, config.backTimeout);',
    replace: '',
    announces: 'a reply does not keep its flow alive',
  },
  {
    id: 'double-counted-drops',
    file: 'core/manager.ts',
    search: 'this.outputs.push(DROPS[reason]);',
    replace: 'this.outputs.push(DROPS[reason]);\n    this.outputs.push(DROPS[reason]);',
    announces: 'every dropped datagram is counted twice',
  },
  {
    id: 'created-without-backend',
    file: 'core/manager.ts',
    search: "if (backend === undefined) return this.drop('NoBackend');",
    replace: `if (backend === undefined) {
      this.outputs.push({ kind: 'Metric', event: { kind: 'FlowCreated' } });
      this.outputs.push({ kind: 'Metric', event: { kind: 'FlowEvicted' } });
      return this.drop('NoBackend');
    }`,
    announces: 'a flow is counted as created and evicted when no backend can be chosen',
  },
  {
    id: 'created-without-backend-stays',
    file: 'core/manager.ts',
    search:
      'const key = affinityKey(this.placementSeed, src, this.config.affinityWithPort);\n' +
      '    const backend = backends.select(key, now);',
    replace: `const key = affinityKey(this.placementSeed, src, this.config.affinityWithPort);
    this.outputs.push({ kind: 'Metric', event: { kind: 'FlowCreated' } });
    const backend = backends.select(key, now);`,
    announces: 'flows are counted as created before it is known that there is a backend',
  },
  {
    id: 'double-close-underflows',
    file: 'core/manager.ts',
    search: 'if (this.table.isLive(flow)) this.flows.close(flow, reason);',
    replace: `if (this.table.isLive(flow)) return this.flows.close(flow, reason);
    this.outputs.push({ kind: 'Metric', event: { kind: 'FlowEvicted' } });
    this.outputs.push({ kind: 'CloseFlow', flow, reason });`,
    announces: 'aborting a flow that is gone evicts it again, and the gauge goes below zero',
  },
  {
    id: 'source-counter-leaks',
    file: 'core/live-flows.ts',
    search: 'this.sources.subtract(config, table.clientOf(slot));',
    replace: '',
    announces: 'a source keeps the flows it no longer has on its account',
  },
  {
    id: 'source-counter-of-new-cluster',
    file: 'core/live-flows.ts',
    search: 'this.sources.subtract(config, table.clientOf(slot));',
    replace:
      'this.sources.subtract([...this.configs.numbers.keys()].at(-1), table.clientOf(slot));',
    announces: 'a flow that closes is taken off the account of the cluster configured now',
  },
  {
    id: 'live-flow-changes-cluster',
    file: 'core/manager.ts',
    search: 'const config = this.configs.get(this.table.configOf(slot));\n    const firstOnly',
    replace: 'const config = this.config;\n    const firstOnly',
    announces: 'a reconfiguration changes the timeout, caps and header of live flows',
  },
  {
    id: 'live-flow-changes-cluster-on-reply',
    file: 'core/manager.ts',
    search: 'const config = this.configs.get(this.table.configOf(flow));',
    replace: 'const { config } = this;',
    announces: 'replies are held against the configuration of now, not of admission',
  },
  {
    id: 'header-on-every-datagram',
    file: 'core/live-flows.ts',
    search: 'if (!config.proxyProtocolEveryDatagram) this.table.setHeaderDue(slot, false);',
    replace: '',
    announces: 'the PROXY header comes with every datagram though only the first should have it',
  },
  {
    id: 'header-twice',
    file: 'core/live-flows.ts',
    search: 'return dgramHeader(this.table.clientOf(slot), backend.address);',
    replace: `const header = dgramHeader(this.table.clientOf(slot), backend.address);
    return new Uint8Array([...header, ...header]);`,
    announces: 'the PROXY header is put before the payload twice',
  },
  {
    id: 'header-never',
    file: 'core/live-flows.ts',
    search: 'this.table.setHeaderDue(slot, config.sendProxyProtocol);',
    replace: '',
    announces: 'no datagram carries a PROXY header',
  },
  {
    id: 'header-once-though-every',
    file: 'core/live-flows.ts',
    search: 'if (!config.proxyProtocolEveryDatagram) this.table',
    replace: 'this.table',
    announces: 'only the first datagram carries a PROXY header though every one should',
  },
  {
    id: 'header-unasked',
    file: 'core/live-flows.ts',
    search: 'this.table.setHeaderDue(slot, config.sendProxyProtocol);',
    replace: 'this.table.setHeaderDue(slot, true);',
    announces: 'backends that did not ask for it get a PROXY header',
  },
  {
    id: 'responses-cap-off-by-one',
    file: 'core/flow.ts',
    search: 'return responsesSeen < (',
    replace: 'return responsesSeen <= (',
    announces: 'a flow gets one reply more than its cap',
  },
  {
    id: 'requests-cap-off-by-one',
    file: 'core/flow.ts',
    search: 'requestsSeen >= config.requests)',
    replace: 'requestsSeen > config.requests)',
    announces: 'a flow forwards one datagram more than its cap',
  },
  {
    id: 'requests-cap-one-early',
    file: 'core/flow.ts',
    search: 'requestsSeen >= config.requests)',
    replace: 'requestsSeen + 1 >= config.requests)',
    announces: 'a flow closes one datagram before its cap',
  },
  {
    id: 'requests-cap-first',
    file: 'core/flow.ts',
    search: "return 'ResponsesReached';",
    replace: "return config.requests === 0 ? 'ResponsesReached' : 'RequestsReached';",
    announces: 'a flow that has both caps always says that requests ended it',
  },
  {
    id: 'max-flows-off-by-one',
    file: 'core/manager.ts',
    search: 'if (this.table.count >= this.cap)',
    replace: 'if (this.table.count > this.cap)',
    announces: 'one flow more than the cap is admitted',
  },
  {
    id: 'max-flows-one-early',
    file: 'core/manager.ts',
    search: 'if (this.table.count >= this.cap)',
    replace: 'if (this.table.count + 1 >= this.cap)',
    announces: 'the last flow that the cap allows is refused',
  },
  {
    id: 'max-rx-off-by-one',
    file: 'core/manager.ts',
    search: 'payload.length > this.maxRxDatagramSize',
    replace: 'payload.length >= this.maxRxDatagramSize',
    announces: 'a datagram of exactly the largest size is dropped',
  },
  {
    id: 'address-limit-off-by-one',
    file: 'core/source-limits.ts',
    search: 'this.flowsOfAddress(config, source) >= config.maxFlowsPerIp',
    replace: 'this.flowsOfAddress(config, source) > config.maxFlowsPerIp',
    announces: 'an address may hold one flow more than its limit',
  },
  {
    id: 'subnet-limit-off-by-one',
    file: 'core/source-limits.ts',
    search: 'this.flowsOfSubnet(config, source) >= config.maxFlowsPerSubnet',
    replace: 'this.flowsOfSubnet(config, source) > config.maxFlowsPerSubnet',
    announces: 'a subnet may hold one flow more than its limit',
  },
  {
    id: 'limit-refuses-live-flows',
    file: 'core/manager.ts',
    search: 'if (slot === undefined) return this',
    replace: `if (slot !== undefined && this.sources.reached(this.config, src)) return this.shed(FLOW_SHED_SOURCE_LIMIT);
    if (slot === undefined) return this`,
    announces: 'a source at its limit is refused on its live flows too',
  },
  {
    id: 'full-table-refuses-live-flows',
    file: 'core/manager.ts',
    search: 'if (slot === undefined) return this',
    replace: `if (slot !== undefined && this.table.count >= this.cap) return this.shed(FLOW_SHED);
    if (slot === undefined) return this`,
    announces: 'live flows stand still while the table is full',
  },
  {
    id: 'drain-refuses-live-flows',
    file: 'core/manager.ts',
    search: 'if (slot === undefined) return this',
    replace: `if (slot !== undefined && this.draining) return this.drop('Shed');
    if (slot === undefined) return this`,
    announces: 'a draining listener no longer forwards for its live flows',
  },
  {
    id: 'client-header-believed',
    file: 'core/manager.ts',
    search: 'if (firstOnly && config.rejectClientHeader && looksLikeProxyHeader(payload)) {',
    replace: 'if (!firstOnly && config.rejectClientHeader && looksLikeProxyHeader(payload)) {',
    announces:
      'a client puts a header of its own before a later datagram, and its backend believes it',
  },
  {
    id: 'client-header-believed-when-long',
    file: 'core/hostile.ts',
    search: 'for (let at = 0; at < SIGNATURE.length; at += 1) {',
    replace: 'for (let at = 0; at <= SIGNATURE.length; at += 1) {',
    announces: 'only a bare signature is recognised: a whole header passes',
  },
  {
    id: 'drain-ignored',
    file: 'core/manager.ts',
    search: 'this.draining = true;',
    replace: '',
    announces: 'a draining listener goes on admitting flows',
  },
  {
    id: 'drops-in-another-order',
    file: 'core/manager.ts',
    search: "if (this.config.cluster === '') return this.drop('NoBackend');",
    replace: `if (payload.length === 0) return this.drop('Invalid');
    if (this.config.cluster === '') return this.drop('NoBackend');`,
    announces: 'an empty datagram to a listener without a cluster is counted as invalid',
  },
  {
    id: 'shrinking-evicts',
    file: 'core/manager.ts',
    search: 'this.cap = count;',
    replace: `this.cap = count;
    for (let slot = count; slot < this.table.highWater; slot += 1) {
      if (this.table.isLive(slot)) this.closeFlow(slot, 'Drain');
    }`,
    announces: 'lowering the cap closes live flows',
  },
  {
    id: 'shrinking-ignored',
    file: 'core/manager.ts',
    search: 'this.cap = count;',
    replace: 'this.cap = Math.max(this.cap, count);',
    announces: 'the cap can be raised, but not lowered',
  },
  {
    id: 'grows-instead-of-shedding',
    file: 'core/manager.ts',
    search: 'if (this.table.count >= this.cap) return this.shed(FLOW_SHED);',
    replace: 'if (this.table.count >= this.cap) this.setMaxFlows(this.cap + 1);',
    announces: 'a full table grows where it should refuse, and takes the cap with it',
  },
  {
    id: 'room-for-one-more',
    file: 'core/manager.ts',
    search: 'if (this.table.count >= this.cap) return this.shed(FLOW_SHED);',
    replace: `if (this.table.count > this.cap) return this.shed(FLOW_SHED);
    if (this.table.count === this.table.capacity) {
      this.table.grow(this.table.capacity + 1);
      this.deadlines.grow(this.table.capacity);
      this.sources.grow(this.table.capacity);
    }`,
    announces: 'one flow more than the cap is admitted, and there is room for it',
  },
  {
    id: 'admission-counts-backwards',
    file: 'core/manager.ts',
    search: 'this.capHighWater = Math.max(this.capHighWater, count);',
    replace: 'this.capHighWater = count;',
    announces: 'the highest cap is forgotten when the cap is lowered',
  },
  {
    id: 'overload-doubles-the-table',
    file: 'core/manager.ts',
    search: 'if (this.table.count >= this.cap) return this.shed(FLOW_SHED);',
    replace: `if (this.table.count >= 2 * this.cap) return this.shed(FLOW_SHED);
    if (this.table.count === this.table.capacity) {
      this.table.grow(2 * this.table.capacity);
      this.deadlines.grow(this.table.capacity);
      this.sources.grow(this.table.capacity);
    }`,
    announces: 'under overload twice the cap is admitted',
  },
  {
    id: 'backend-chosen-anew',
    file: 'core/manager.ts',
    search: 'if (slot === undefined) return this',
    replace: `if (slot !== undefined) {
      const again = backends.select(affinityKey(this.placementSeed, src, true), now);
      if (again !== undefined) {
        this.table.setUpstream(slot, this.backends.acquire(again), this.table.configOf(slot));
      }
    }
    if (slot === undefined) return this`,
    announces: 'each datagram of a live flow chooses its backend anew',
  },
  {
    id: 'backend-remembered-by-address',
    file: 'core/live-flows.ts',
    search: 'dst: backend.address,',
    replace: 'dst: ((this.known ??= {})[this.table.clientOf(slot).a] ??= backend.address),',
    announces: 'all flows of one address send to the backend of its first flow',
  },
  {
    id: 'backend-remembered-by-slot',
    file: 'core/live-flows.ts',
    search: 'dst: backend.address,',
    replace: 'dst: ((this.known ??= [])[slot] ??= backend.address),',
    announces: 'a slot that is used again sends to the backend of the flow before',
  },
  {
    id: 'client-remembered-by-slot',
    file: 'core/live-flows.ts',
    search: 'dst: this.table.clientOf(flow),',
    replace: 'dst: ((this.known ??= [])[flow] ??= this.table.clientOf(flow)),',
    announces: 'a slot that is used again delivers replies to the client of the flow before',
  },
  {
    id: 'reply-to-latest-client',
    file: 'core/live-flows.ts',
    search: 'dst: this.table.clientOf(flow),',
    replace: 'dst: this.table.clientOf(this.table.highWater - 1),',
    announces: 'replies go to the client of the newest slot',
  },
  {
    id: 'reply-to-first-socket',
    file: 'core/live-flows.ts',
    search: 'dst: this.table.clientOf(flow),',
    replace:
      'dst: ((this.known ??= {})[this.table.clientOf(flow).a] ??= this.table.clientOf(flow)),',
    announces: 'replies to any socket of a client go to the first one that got a reply',
  },
  {
    id: 'payload-cut-short',
    file: 'core/live-flows.ts',
    search: 'prefix: this.prefixFor(slot, config, backend),\n      payload,',
    replace: `prefix: this.prefixFor(slot, config, backend),
      payload: payload.subarray(0, 512 - 1),`,
    announces: 'a datagram of 512 bytes loses its last one',
  },
  {
    id: 'reply-cut-short',
    file: 'core/manager.ts',
    search: 'return this.flows.reply(flow, config, payload, now);',
    replace:
      'return this.flows.reply(flow, config, payload.subarray(0, this.maxRxDatagramSize), now);',
    announces: 'replies are cut to the size that client datagrams may have',
  },
  {
    id: 'payload-kept-too-long',
    file: 'core/live-flows.ts',
    search: 'from: this.table.localOf(flow),\n      payload,',
    replace: `from: this.table.localOf(flow),
      payload: ((this.kept ??= []).push(payload), this.kept.length > 2 ? this.kept.shift() : payload),`,
    announces: 'a reply carries bytes of one received before',
  },
  {
    id: 'oversize-replies-dropped',
    file: 'core/manager.ts',
    search: 'if (payload.length > DATAGRAM_BYTES_MAX)',
    replace: 'if (payload.length > this.maxRxDatagramSize)',
    announces: 'replies larger than client datagrams may be are dropped',
  },
  {
    id: 'reply-cap-not-settled',
    file: 'core/live-flows.ts',
    search: 'this.settle(flow, config, now);',
    replace: 'this.reschedule();',
    announces: 'a reply that reaches the cap leaves its flow open',
  },
];
