/** What holds of a flow machine whatever arrives. Invariants I1 to I8 and I13 are checked by the rig after every call. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  machines,
  openClusters,
  steps,
  trafficSteps,
  type Step,
} from '../test/flow-arbitraries.ts';
import { A, armed, bytes, closed, cluster, FlowRig } from '../test/flow-rig.ts';
import { flowId } from './brand.ts';
import type { MetricEvent, Output } from './contract.ts';
import type { ManagerOptions } from './manager.ts';
import { microseconds, instant } from './time.ts';
import type { UdpFlow } from './flow.ts';

const walks = fc.array(steps, { maxLength: 80, size: 'max' });

test('prop_flow_invariants: never above the cap, none left after a last tick, as many closed as created', () => {
  const traffic = fc.array(trafficSteps, { maxLength: 80, size: 'max' });
  fc.assert(
    fc.property(machines, openClusters, traffic, (machine, config, walk) => {
      const rig = new FlowRig({ ...machine, config });
      const outputs: Output[] = [];
      let now = 0;
      for (const { wait, action } of walk) {
        now += wait;
        outputs.push(...rig.perform(action, now / 1_000_000));
        expect(rig.manager.flowCount).toBeLessThanOrEqual(machine.maxFlows);
      }
      outputs.push(...rig.timeout((now + 1_000) / 1_000_000));
      expect(rig.manager.flowCount).toBe(0);
      const opened = count(outputs, 'OpenUpstream') - countMetric(outputs, 'FlowRebound');
      expect(count(outputs, 'CloseFlow')).toBe(opened);
    }),
  );
});

test('prop_deadline_revalidation_defeats_stale_close: a refresh inside the window defeats the old expiry', () => {
  const window = fc.integer({ min: 2, max: 10_000_000 });
  fc.assert(
    fc.property(window, fc.double({ min: 0, max: 1, noNaN: true }), (timeout, share) => {
      // Strictly inside: after the admission, before the deadline.
      const refresh = 1 + Math.floor(share * (timeout - 2));
      const rig = new FlowRig({ config: cluster({ frontTimeout: microseconds(timeout) }) });
      rig.client(A, bytes('q'), 0);
      rig.client(A, bytes('q'), refresh / 1_000_000);
      const later = (refresh + timeout) / 1_000_000;
      expect(rig.timeout(timeout / 1_000_000)).toEqual([armed(later)]);
      expect(rig.manager.flowCount).toBe(1);
      expect(rig.timeout(later)).toEqual(closed(0, 'Idle', later));
    }),
  );
});

test('no output depends on the seed of the tables', () => {
  const word = fc.integer();
  fc.assert(
    fc.property(machines, walks, word, word, (machine, walk, first, second) => {
      const plain = outputsOf({ ...machine, tableSeed: { first: 0, second: 0 } }, walk, 0);
      expect(outputsOf({ ...machine, tableSeed: { first, second } }, walk, 0)).toEqual(plain);
    }),
  );
});

test('a later start shifts the instants of the timer and changes nothing else', () => {
  fc.assert(
    fc.property(machines, walks, fc.nat(2 ** 40), (machine, walk, shift) => {
      const shifted = outputsOf(machine, walk, 0).map((output) =>
        output.kind === 'ArmTimer' ? { ...output, at: instant(output.at + shift) } : output,
      );
      expect(outputsOf(machine, walk, shift)).toEqual(shifted);
    }),
  );
});

test('a call that drops changes nothing but a flow it closed first, and says nothing but the drop and its metric', () => {
  fc.assert(
    fc.property(machines, walks, (machine, walk) => {
      const rig = new FlowRig(machine);
      let now = 0;
      for (const { wait, action } of walk) {
        now += wait;
        const before = stateOf(rig);
        const outputs = rig.perform(action, now / 1_000_000);
        if (count(outputs, 'Drop') === 0) continue;
        const closes = outputs.findIndex((output) => output.kind === 'CloseFlow') + 1;
        if (closes === 0) expect(stateOf(rig)).toEqual(before);
        expect(outputs.slice(closes, -1).map(nameOfMetric).join()).toMatch(
          closes === 0
            ? /^(FlowShed.*|HeaderRefused|LoopRefused)?$/
            : /^(ArmTimer)?,?(FlowShed.*|LoopRefused)?$/,
        );
      }
    }),
  );
});

test('a datagram that arrives is sent on or dropped, exactly one of the two, exactly once', () => {
  fc.assert(
    fc.property(machines, walks, (machine, walk) => {
      const rig = new FlowRig(machine);
      let now = 0;
      for (const { wait, action } of walk) {
        now += wait;
        const outputs = rig.perform(action, now / 1_000_000);
        const ends = count(outputs, 'SendToBackend', 'SendToClient', 'Drop');
        expect(ends).toBe(action.kind === 'client' || action.kind === 'backend' ? 1 : 0);
      }
    }),
  );
});

test('what is said of a flow stands between its creation and its close (spec §2.11)', () => {
  fc.assert(
    fc.property(machines, walks, (machine, walk) => {
      const live = new Set<number>();
      let last: Output | undefined;
      for (const output of outputsOf(machine, walk, 0)) {
        if (output.kind === 'OpenUpstream') {
          const kind = live.has(output.flow) ? 'FlowRebound' : 'FlowCreated';
          expect(last).toEqual({ kind: 'Metric', event: { kind } });
          live.add(output.flow);
        } else if ('flow' in output) {
          expect(live.has(output.flow)).toBe(true);
        }
        if (output.kind === 'CloseFlow') {
          expect(last).toEqual({ kind: 'Metric', event: { kind: 'FlowEvicted' } });
          live.delete(output.flow);
        }
        last = output;
      }
    }),
  );
});

test('after a firing the timer is armed strictly later, or not at all', () => {
  fc.assert(
    fc.property(machines, walks, (machine, walk) => {
      const rig = new FlowRig(machine);
      let now = 0;
      for (const { wait, action } of walk) {
        now += wait;
        rig.perform(action, now / 1_000_000);
        rig.timeout(now / 1_000_000);
        expect(rig.manager.pollTimeout() ?? Infinity).toBeGreaterThan(now);
      }
    }),
  );
});

test('a flow keeps what it was born with for life, its backend until it is rebound, and its counters only grow', () => {
  fc.assert(
    fc.property(machines, walks, (machine, walk) => {
      const rig = new FlowRig(machine);
      let before = stateOf(rig);
      let serials = 0;
      let now = 0;
      for (const { wait, action } of walk) {
        now += wait;
        const opened = rig
          .perform(action, now / 1_000_000)
          .flatMap((output) => (output.kind === 'OpenUpstream' ? [output.flow] : []));
        const after = stateOf(rig);
        for (const [id, flow] of after.flows) {
          const old = before.flows.get(id);
          if (old?.serial !== flow.serial) {
            expect(flow.serial).toBeGreaterThan(serials);
            serials = flow.serial;
            continue;
          }
          const { client, local, backend, config, createdAt } = old;
          expect(flow).toMatchObject({ client, local, config, createdAt });
          if (!opened.includes(flowId(id))) expect(flow.backend).toBe(backend);
          expect(flow.requestsSeen).toBeGreaterThanOrEqual(old.requestsSeen);
          expect(flow.responsesSeen).toBeGreaterThanOrEqual(old.responsesSeen);
        }
        before = after;
      }
    }),
  );
});

interface State {
  readonly flows: ReadonlyMap<number, UdpFlow>;
  readonly timeout: number | undefined;
  readonly count: number;
}

function stateOf({ manager }: FlowRig): State {
  const flows = new Map<number, UdpFlow>();
  for (let id = 0; id < manager.table.highWater; id += 1) {
    const flow = manager.flow(flowId(id));
    if (flow !== undefined) flows.set(id, flow);
  }
  return { flows, timeout: manager.pollTimeout(), count: manager.flowCount };
}

function outputsOf(
  options: Partial<ManagerOptions>,
  walk: readonly Step[],
  start: number,
): Output[] {
  const rig = new FlowRig(options);
  let now = start;
  return walk.flatMap(({ wait, action }) => {
    now += wait;
    return rig.perform(action, now / 1_000_000);
  });
}

function count(outputs: readonly Output[], ...kinds: readonly Output['kind'][]): number {
  return outputs.filter((output) => kinds.includes(output.kind)).length;
}

function countMetric(outputs: readonly Output[], kind: MetricEvent['kind']): number {
  return outputs.filter((output) => output.kind === 'Metric' && output.event.kind === kind).length;
}

function nameOfMetric(output: Output): string {
  return output.kind === 'Metric' ? output.event.kind : output.kind;
}
