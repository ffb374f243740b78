/**
 * Bugs that only a whole process shows: sockets that stay, limits that count wrong, health that does not follow the probes,
 * timers, wake-ups and queues that nobody comes back to. Each is for an oracle of sim/world/oracles/.
 */
import type { Mutant } from './mutant.ts';

export const WORLD_STATE_MUTANTS: readonly Mutant[] = [
  {
    id: 'falls-late',
    file: 'core/health/hysteresis.ts',
    search: 'if (failures < fall)',
    replace: 'if (failures <= fall)',
    announces: 'a backend is down one failure later than its cluster says',
  },
  {
    id: 'failures-outlive-a-success',
    file: 'core/health/hysteresis.ts',
    search: '{ ...state, successes: state.successes + 1, failures: 0 }',
    replace: '{ ...state, successes: state.successes + 1 }',
    announces: 'failures count as a streak although successes lie between them',
  },
  {
    id: 'late-answer-counts',
    file: 'core/health/probe-plan.ts',
    search: 'this.finish(target, target.flight, isLate ? missingAnswer(settings) : answer, now);',
    replace: 'this.finish(target, target.flight, answer, now);',
    announces: 'an answer that came after its time counts as a success',
  },
  {
    id: 'health-forgotten-at-a-reload',
    file: 'core/health/probe-plan.ts',
    search: 'target.question = question;',
    replace: 'target.question = question;\n    target.state = INITIAL_HEALTH;',
    announces: 'every backend counts as up again when its cluster is configured anew',
  },
  {
    id: 'down-is-not-told',
    file: 'core/control-plane.ts',
    search: 'const { cluster, address } = changed;\n    this.steer(cluster, address);',
    replace: 'const { cluster, address } = changed;',
    announces: 'data planes are not told that a backend went down or came up',
  },
  {
    id: 'last-one-ejected',
    file: 'core/health/passive.ts',
    search: 'return !isLast && ejected + 1 <= all.length * EJECTED_SHARE_MAX;',
    replace: 'return true;',
    announces: 'the last backend that serves is ejected for its refusals',
  },
  {
    id: 'socket-left-open',
    file: 'core/pump.ts',
    search: "if (output.kind === 'CloseUpstream') this.ports.closeUpstream(output.socket);",
    replace:
      "if (output.kind === 'CloseUpstream' && output.socket % 7 !== 0) this.ports.closeUpstream(output.socket);",
    announces: 'one socket in seven stays open when its flow closes',
  },
  {
    id: 'probe-left-open',
    file: 'core/control-pump.ts',
    search: 'return this.ports.cancelProbe(output.probe);',
    replace: 'return undefined;',
    announces: 'a probe that got no answer keeps its socket for ever',
  },
  {
    id: 'listener-left-open',
    file: 'core/plane-listeners.ts',
    search: "outputs.push({ kind: 'CloseListener', listener: listener.id });",
    replace: '',
    announces: 'the socket of a listener that was removed stays open',
  },
  {
    id: 'cap-does-not-shrink',
    file: 'core/manager.ts',
    search: 'this.cap = count;\n    this.capHighWater',
    replace: 'this.cap = Math.max(this.cap, count);\n    this.capHighWater',
    announces: 'a lowered max_flows has no effect',
  },
  {
    id: 'one-flow-too-many-per-address',
    file: 'core/source-limits.ts',
    search: 'this.flowsOfAddress(config, source) >= config.maxFlowsPerIp',
    replace: 'this.flowsOfAddress(config, source) > config.maxFlowsPerIp',
    announces: 'an address holds one flow more than it may',
  },
  {
    id: 'bucket-never-empty',
    file: 'core/token-sketch.ts',
    search: 'if (this.usedAt(at, now) >= after) continue;',
    replace: 'if (this.usedAt(at, now) * 2 >= after) continue;',
    announces: 'sources open flows faster than their rate says',
  },
  {
    id: 'flow-rate-forgets',
    file: 'core/flow-rates.ts',
    search: 'all[slot] = expected + interval;',
    replace: 'all[slot] = now + interval;',
    announces: 'a flow may send its burst over and over',
  },
  {
    id: 'spin-on-builds',
    file: 'core/table-builds.ts',
    search: 'this.next = this.isOver ? undefined :',
    replace: 'this.next =',
    announces: 'once a table was built the data plane asks to be woken at once, for ever',
  },
  {
    id: 'sweep-without-an-end',
    file: 'core/sweep.ts',
    search: 'if (!again) this.wake = undefined;\n    return again;',
    replace: 'return again;',
    announces: 'a pass over all flows is followed by another one, for ever',
  },
  {
    id: 'armed-at-a-stale-deadline',
    file: 'core/live-flows.ts',
    search: 'if (reason === undefined || table.isInGrace(slot)) this.reschedule();',
    replace: 'if (reason === undefined || table.isInGrace(slot)) return;',
    announces: 'the machine is woken for deadlines that have moved, and finds nothing to do',
  },
  {
    id: 'source-stays-counted',
    file: 'core/live-flows.ts',
    search: 'this.sources.subtract(config, table.clientOf(slot));',
    replace: 'if (slot % 5 !== 0) this.sources.subtract(config, table.clientOf(slot));',
    announces: 'an address stays counted for some of its flows that have closed',
  },
  {
    id: 'terms-never-let-go',
    file: 'core/live-flows.ts',
    search:
      'this.configs.release(table.configOf(slot));\n    this.deadlines.remove(slot);\n    table.remove(slot);',
    replace: 'this.deadlines.remove(slot);\n    table.remove(slot);',
    announces: 'the terms of every flow that ever was are kept',
  },
];
