/** Bugs about clients that are not let in, flows whose backend is lost, and flows that are known by their serial. */
import type { Mutant } from './mutant.ts';

const FATE =
  "const fate = backends.fateOf?.(this.backends.get(this.table.backendOf(slot))) ?? 'keep';";
const DENIES = "if (backends.denies?.(src) === true) return this.drop('Denied');";
const REFUSES = 'if (refusal !== undefined) return this.refuse(REFUSED[refusal]);';

export const GUARD_MUTANTS: readonly Mutant[] = [
  {
    id: 'fate-never-asked',
    file: 'core/manager.ts',
    search: FATE,
    replace: "const fate: string = 'keep';",
    announces: 'flows stay on a lost backend whatever the cluster wants',
  },
  {
    id: 'fate-asked-once',
    file: 'core/manager.ts',
    search: FATE,
    replace: `const fate =
      this.table.requestsOf(slot) > 1
        ? 'keep'
        : (backends.fateOf?.(this.backends.get(this.table.backendOf(slot))) ?? 'keep');`,
    announces: 'only the second datagram of a flow asks what became of its backend',
  },
  {
    id: 'fate-asked-twice',
    file: 'core/manager.ts',
    search: FATE,
    replace: `backends.fateOf?.(this.backends.get(this.table.backendOf(slot)));\n    ${FATE}`,
    announces: 'the fate of a flow is asked for twice',
  },
  {
    id: 'fate-close-kept',
    file: 'core/manager.ts',
    search: "if (fate === 'close') {",
    replace: "if (fate === 'close' && this.table.count > 1) {",
    announces: 'the last flow stays on a lost backend that flows are to leave',
  },
  {
    id: 'fate-close-drops-the-datagram',
    file: 'core/manager.ts',
    search: "this.flows.close(slot, 'BackendLost');\n      return false;",
    replace: "this.flows.close(slot, 'BackendLost');\n      return true;",
    announces: 'the datagram that finds its backend lost opens no new flow',
  },
  {
    id: 'fate-before-the-rate',
    file: 'core/manager.ts',
    search: 'if (config.datagramsPerSecond !== 0 && !this.rates.take(slot, config, now)) {',
    replace: `if (
      backends.fateOf?.(this.backends.get(this.table.backendOf(slot))) !== 'close' &&
      config.datagramsPerSecond !== 0 &&
      !this.rates.take(slot, config, now)
    ) {`,
    announces: 'a flow whose backend is lost closes though its datagram is over the rate',
  },
  {
    id: 'rebind-stays',
    file: 'core/manager.ts',
    search: 'this.flows.rebind(slot, config, backend);',
    replace: '',
    announces: 'another backend is chosen for a flow, and the lost one still gets its datagrams',
  },
  {
    id: 'rebind-to-nobody-forwards',
    file: 'core/manager.ts',
    search: 'if (backend === undefined) return false;',
    replace: 'if (backend === undefined) return true;',
    announces: 'a flow that finds no other backend goes on with the lost one',
  },
  {
    id: 'rebind-by-the-newest-key',
    file: 'core/manager.ts',
    search: 'affinityKey(this.placementSeed, client, config.affinityWithPort)',
    replace: 'affinityKey(this.placementSeed, client, this.config.affinityWithPort)',
    announces: 'a flow is rebound by the affinity of the newest configuration',
  },
  {
    id: 'rebind-to-itself',
    file: 'core/live-flows.ts',
    search: 'if (backend.id === lost.id && sameAddress(backend.address, lost.address)) return;',
    replace: '',
    announces: 'a flow that keeps its backend gets a new socket',
  },
  {
    id: 'rebind-is-silent',
    file: 'core/live-flows.ts',
    search: 'this.outputs.push(FLOW_REBOUND);\n',
    replace: '',
    announces: 'a rebind is not counted',
  },
  {
    id: 'rebind-told-late',
    file: 'core/live-flows.ts',
    search:
      "this.outputs.push(FLOW_REBOUND);\n    this.outputs.push({ kind: 'OpenUpstream', flow: flowId(slot), backend });",
    replace:
      "this.outputs.push({ kind: 'OpenUpstream', flow: flowId(slot), backend });\n    this.outputs.push(FLOW_REBOUND);",
    announces: 'a rebind is told after the socket was opened',
  },
  {
    id: 'rebind-without-a-socket',
    file: 'core/live-flows.ts',
    search:
      "this.outputs.push(FLOW_REBOUND);\n    this.outputs.push({ kind: 'OpenUpstream', flow: flowId(slot), backend });",
    replace: 'this.outputs.push(FLOW_REBOUND);',
    announces: 'a rebound flow goes on over the socket to the lost backend',
  },
  {
    id: 'rebind-without-a-header',
    file: 'core/live-flows.ts',
    search:
      'this.backends.release(number);\n    table.setHeaderDue(slot, config.sendProxyProtocol);',
    replace: 'this.backends.release(number);',
    announces: 'the new backend of a flow never hears who the client is',
  },
  {
    id: 'rebind-keeps-the-lost',
    file: 'core/live-flows.ts',
    search: 'this.backends.release(number);\n',
    replace: '',
    announces: 'a lost backend stays in use by the flows that left it',
  },
  {
    id: 'rebind-counts-as-a-request',
    file: 'core/live-flows.ts',
    search: "nextPhase('Established', 'Rebound');",
    replace: "nextPhase('Established', 'Rebound');\n    table.countRequest(slot);",
    announces: 'a rebind brings a flow one request nearer to its cap',
  },
  {
    id: 'denied-with-a-flow-passes',
    file: 'core/manager.ts',
    search: DENIES,
    replace: `if (
      this.table.find(this.table.hashOf(src, local), src, local) === undefined &&
      backends.denies?.(src) === true
    ) {
      return this.drop('Denied');
    }`,
    announces: 'a client that is kept out goes on with the flow it has',
  },
  {
    id: 'denied-without-a-flow-passes',
    file: 'core/manager.ts',
    search: DENIES,
    replace: `if (
      this.table.find(this.table.hashOf(src, local), src, local) !== undefined &&
      backends.denies?.(src) === true
    ) {
      return this.drop('Denied');
    }`,
    announces: 'a client that is kept out may open a flow',
  },
  {
    id: 'denied-while-there-is-room',
    file: 'core/manager.ts',
    search: DENIES,
    replace: `if (this.table.count > 0 && backends.denies?.(src) === true) return this.drop('Denied');`,
    announces: 'an empty table lets anybody in',
  },
  {
    id: 'denied-asked-twice',
    file: 'core/manager.ts',
    search: DENIES,
    replace: `${DENIES}\n    backends.denies?.(src);`,
    announces: 'the access list is searched twice for each datagram',
  },
  {
    id: 'denied-before-invalid',
    file: 'core/manager.ts',
    search: "if (isUnanswerable(src)) return this.drop('Invalid');",
    replace: `if (backends.denies?.(src) === true) return this.drop('Denied');
    if (isUnanswerable(src)) return this.drop('Invalid');`,
    announces: 'an empty datagram of a client that is kept out is dropped as denied',
  },
  {
    id: 'refusal-of-loops-alone',
    file: 'core/manager.ts',
    search: REFUSES,
    replace: "if (refusal === 'Loop') return this.refuse(REFUSED[refusal]);",
    announces: 'a source that opens flows too fast opens them all the same',
  },
  {
    id: 'refusal-told-and-forgotten',
    file: 'core/manager.ts',
    search: REFUSES,
    replace: 'if (refusal !== undefined) this.refuse(REFUSED[refusal]);',
    announces: 'a client is refused, and let in',
  },
  {
    id: 'refusal-only-at-the-cap',
    file: 'core/manager.ts',
    search: REFUSES,
    replace:
      'if (refusal !== undefined && this.table.count + 2 > this.cap) return this.refuse(REFUSED[refusal]);',
    announces: 'refusals count only where the table is almost full',
  },
  {
    id: 'refusal-after-draining',
    file: 'core/manager.ts',
    search: 'const refusal = backends.refuses?.(src, local, now);',
    replace:
      "if (this.draining) return this.drop('Shed');\n    const refusal = backends.refuses?.(src, local, now);",
    announces: 'while draining, a loop is told as shed',
  },
  {
    id: 'refusal-asked-of-everybody',
    file: 'core/manager.ts',
    search: 'if (slot === undefined) return this.onUnknownClient(',
    replace:
      'if (slot !== undefined) backends.refuses?.(src, local, now);\n    if (slot === undefined) return this.onUnknownClient(',
    announces: 'established flows spend what is there for new ones',
  },
  {
    id: 'refusal-of-a-port-is-shed',
    file: 'core/manager-outputs.ts',
    search: 'PortExhausted: [FLOW_SHED, DROPS.PortExhausted],',
    replace: 'PortExhausted: [FLOW_SHED, DROPS.Shed],',
    announces: 'a machine out of ports tells it as any other shedding',
  },
  {
    id: 'refusal-without-its-metric',
    file: 'core/manager-outputs.ts',
    search: 'NoDescriptor: [FLOW_SHED, DROPS.Shed],',
    replace: 'NoDescriptor: [DROPS.Shed],',
    announces: 'a flow that is shed for want of a descriptor is not counted as shed',
  },
  {
    id: 'serial-never-moves',
    file: 'core/flow-table.ts',
    search: 'this.serials += 1;',
    replace: '',
    announces: 'all flows have one serial',
  },
  {
    id: 'serial-of-the-crowd',
    file: 'core/flow-table.ts',
    search: '+ SERIAL] = this.serials;',
    replace: '+ SERIAL] = this.live;',
    announces: 'a serial is the number of flows there were, and comes again',
  },
  {
    id: 'serial-in-pairs',
    file: 'core/flow-table.ts',
    search: '+ SERIAL] = this.serials;',
    replace: '+ SERIAL] = Math.ceil(this.serials / 2);',
    announces: 'two flows in a row have one serial',
  },
  {
    id: 'serial-new-on-rebind',
    file: 'core/live-flows.ts',
    search: 'table.setUpstream(slot, this.backends.acquire(backend), table.configOf(slot));',
    replace:
      'table.setUpstream(slot, this.backends.acquire(backend), table.configOf(slot));\n    table.serials += 1;\n    table.doubles[8 * slot + 7] = table.serials;',
    announces: 'a rebound flow gets another serial',
  },
  {
    id: 'kill-finds-the-dead',
    file: 'core/flow-scans.ts',
    search: 'if (table.isLive(slot) && table.serialOf(slot) === serial) return slot;',
    replace: 'if (table.serialOf(slot) === serial) return slot;',
    announces: 'a flow that is gone is found by its serial',
  },
  {
    id: 'kill-misses-who-lingers',
    file: 'core/flow-scans.ts',
    search: 'if (table.isLive(slot) && table.serialOf(slot) === serial) return slot;',
    replace:
      'if (table.isLive(slot) && !table.isLingering(slot) && table.serialOf(slot) === serial) return slot;',
    announces: 'a flow that lingers cannot be killed',
  },
  {
    id: 'sweep-misses-the-last',
    file: 'core/flow-scans.ts',
    search: 'let slot = from; slot < table.highWater;',
    replace: 'let slot = from; slot < table.highWater - 1;',
    announces: 'the flow in the highest slot outlives its backend',
  },
  {
    id: 'sweep-misses-who-lingers',
    file: 'core/flow-scans.ts',
    search: 'if (table.isLive(slot) && table.backendOf(slot) === backend) return slot;',
    replace:
      'if (table.isLive(slot) && !table.isLingering(slot) && table.backendOf(slot) === backend) return slot;',
    announces: 'flows that linger outlive their backend',
  },
  {
    id: 'first-limit-forgets-flows',
    file: 'core/live-flows.ts',
    search: 'if (!sources.expect(config)) return;',
    replace: 'if (!sources.expect(config) || table.highWater > 0) return;',
    announces: 'the first limit on sources does not count the flows that were there before it',
  },
  {
    id: 'first-limit-counts-for-itself',
    file: 'core/live-flows.ts',
    search: 'sources.add(configs.get(table.configOf(slot)), table.clientOf(slot));',
    replace: 'sources.add(config, table.clientOf(slot));',
    announces: 'the first limit on sources counts the flows of other clusters as its own',
  },
];
