import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ipv4 } from '../address.ts';
import { createRandom } from '../random.ts';
import { seconds, after, instant } from '../time.ts';
import { ProbePlan } from './probe-plan.ts';
import { evaluateAvailability, RollUp, type BackendCondition } from './roll-up.ts';
import { healthSettings } from './settings.ts';

const GOOD: BackendCondition = { health: 'up', ejected: false, closing: false };
const DOWN: BackendCondition = { ...GOOD, health: 'down' };

describe('availability', () => {
  test('evaluate_availability_empty_list_returns_zero_zero: nobody is nobody', () => {
    expect(evaluateAvailability([])).toEqual({ available: 0, total: 0 });
  });

  test('evaluate_availability_counts_only_healthy_normal_not_in_backoff: up, not closing, not ejected', () => {
    const conditions = [GOOD, DOWN, { ...GOOD, closing: true }, { ...GOOD, ejected: true }, GOOD];
    expect(evaluateAvailability(conditions)).toEqual({ available: 2, total: 5 });
  });

  test('evaluate_availability_excludes_retry_policy_down: an ejected backend is in back-off', () => {
    expect(evaluateAvailability([{ ...GOOD, ejected: true }])).toEqual({ available: 0, total: 1 });
  });

  test('is_available_requires_health_status_and_retry_policy: each of the three alone takes it away', () => {
    for (const one of [DOWN, { ...GOOD, ejected: true }, { ...GOOD, closing: true }]) {
      expect(evaluateAvailability([one]).available).toBe(0);
    }
    expect(evaluateAvailability([GOOD]).available).toBe(1);
  });
});

describe('roll-up', () => {
  test('record_cluster_availability_flips_to_alldown_then_idempotent: told once', () => {
    const rollUp = clusterOf('dns');
    rollUp.record('dns', { available: 1, total: 2 });
    expect(kinds(rollUp, 0, 2)).toEqual(['Gauges', 'NoAvailableBackends']);
    expect(rollUp.statusOf('dns')).toBe('AllDown');
    expect(kinds(rollUp, 0, 2)).toEqual(['Gauges']);
    expect(kinds(rollUp, 0, 3)).toEqual(['Gauges']);
  });

  test('record_cluster_availability_recovers_to_available: told once, and the next outage is news again', () => {
    const rollUp = clusterOf('dns');
    rollUp.record('dns', { available: 0, total: 2 });
    expect(rollUp.record('dns', { available: 1, total: 2 })).toEqual([
      { kind: 'Gauges', cluster: 'dns', available: 1, total: 2 },
      { kind: 'ClusterRecovered', cluster: 'dns', available: 1 },
    ]);
    expect(rollUp.statusOf('dns')).toBe('Available');
    expect(kinds(rollUp, 2, 2)).toEqual(['Gauges']);
    expect(kinds(rollUp, 0, 2)).toEqual(['Gauges', 'NoAvailableBackends']);
  });

  test('record_cluster_availability_empty_cluster_stays_available: and emptying an outage does not recover it', () => {
    const rollUp = clusterOf('dns');
    expect(kinds(rollUp, 0, 0)).toEqual(['Gauges']);
    expect(rollUp.statusOf('dns')).toBe('Available');
    rollUp.record('dns', { available: 0, total: 1 });
    expect(kinds(rollUp, 0, 0)).toEqual(['Gauges']);
    expect(rollUp.statusOf('dns')).toBe('Available');
    expect(kinds(rollUp, 0, 1)).toEqual(['Gauges']);
    expect(kinds(rollUp, 1, 1)).toEqual(['Gauges', 'ClusterRecovered']);
  });

  test('record_cluster_availability_missing_cluster_is_noop: never added, or removed', () => {
    const rollUp = clusterOf('dns');
    expect(rollUp.record('ntp', { available: 0, total: 1 })).toEqual([]);
    rollUp.record('dns', { available: 0, total: 1 });
    rollUp.remove('dns');
    expect(rollUp.record('dns', { available: 1, total: 1 })).toEqual([]);
    expect(rollUp.statusOf('dns')).toBe('Available');
    expect(rollUp.availabilityOf('dns')).toBeUndefined();
  });

  test('import_configuration_state_latches_cluster_rollup_gauges: a cluster added again keeps its counts and its latch', () => {
    const rollUp = clusterOf('dns');
    expect(rollUp.record('dns', { available: 0, total: 2 })[0]).toEqual({
      kind: 'Gauges',
      cluster: 'dns',
      available: 0,
      total: 2,
    });
    rollUp.add('dns');
    expect(rollUp.availabilityOf('dns')).toEqual({ available: 0, total: 2 });
    expect(kinds(rollUp, 0, 2)).toEqual(['Gauges']);
  });

  test('set_health_check_config_none_re_emits_rollup_after_reset: switching probes off ends the outage they found', () => {
    const address = ipv4(0x7f000001, 53);
    const cluster = { cluster: 'dns', proxyProtocol: false, backends: [address] };
    const plan = new ProbePlan(createRandom({ high: 0, low: 1 }));
    const rollUp = clusterOf('dns');
    const heard: string[] = [];
    const record = (): void => {
      for (let output = plan.pollOutput(); output !== undefined; output = plan.pollOutput()) {
        if (output.kind !== 'HealthChanged') continue;
        const conditions = [{ ...GOOD, health: output.to }];
        const told = rollUp.record('dns', evaluateAvailability(conditions));
        heard.push(...told.map(({ kind }) => kind));
      }
    };
    plan.configure([{ ...cluster, settings: healthSettings({ fall: 1 }) }], instant(0));
    record();
    plan.probeAnswered(1, 'refused', after(instant(0), seconds(1)));
    record();
    expect(heard).toEqual(['Gauges', 'NoAvailableBackends']);
    plan.configure([{ ...cluster, settings: undefined }], after(instant(0), seconds(2)));
    record();
    expect(heard.slice(2)).toEqual(['Gauges', 'ClusterRecovered']);
  });
});

test('law: outages and recoveries alternate, and a cluster is all down just when it has backends and none available', () => {
  const count = fc.record({ available: fc.nat(2), down: fc.nat(2) });
  fc.assert(
    fc.property(fc.array(count, { maxLength: 60, size: 'max' }), (counts) => {
      const rollUp = clusterOf('dns');
      let last = 'ClusterRecovered';
      for (const { available, down } of counts) {
        const told = rollUp.record('dns', { available, total: available + down });
        expect(told[0]).toEqual({
          kind: 'Gauges',
          cluster: 'dns',
          available,
          total: available + down,
        });
        for (const { kind } of told.slice(1)) {
          expect(kind).not.toBe(last);
          last = kind;
        }
        const isAllDown = available === 0 && down > 0;
        expect(rollUp.statusOf('dns')).toBe(isAllDown ? 'AllDown' : 'Available');
        if (isAllDown) expect(last).toBe('NoAvailableBackends');
        if (available > 0) expect(last).toBe('ClusterRecovered');
      }
    }),
  );
});

function clusterOf(cluster: string): RollUp {
  const rollUp = new RollUp();
  rollUp.add(cluster);
  return rollUp;
}

function kinds(rollUp: RollUp, available: number, total: number): string[] {
  return rollUp.record('dns', { available, total }).map(({ kind }) => kind);
}
