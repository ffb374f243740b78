/** What answers do to health, and what a new configuration does to both. */
import { describe, expect, test } from 'vitest';
import { present } from '../assert.ts';
import { backend, cluster, ONE, ProbeBench, TWO, UDP } from '../../test/probe-bench.ts';
import { instant, milliseconds, seconds } from '../time.ts';
import type { ProbeAnswer } from './probe-contract.ts';

describe('answers', () => {
  test('three failed probes in a row: HealthChanged says what the last one met, and how many', () => {
    const bench = new ProbeBench();
    bench.configure([cluster({})]);
    bench.rounds(['refused', 'refused', 'refused']);
    expect(bench.changes).toEqual([
      {
        kind: 'HealthChanged',
        cluster: 'dns',
        address: ONE,
        from: 'up',
        to: 'down',
        evidence: { kind: 'probe', mode: 'tcp', outcome: 'refused', streak: 3 },
      },
    ]);
    expect(bench.plan.healthOf('dns', ONE)).toBe('down');
  });

  test('udp_probe_result_feeds_same_hysteresis: three failures down, two successes up', () => {
    const bench = new ProbeBench();
    bench.configure([cluster(UDP)]);
    bench.rounds(['refused', undefined, 'failed', 'ok', 'ok']);
    expect(bench.changes.map(({ to, evidence }) => [to, evidence])).toEqual([
      ['down', { kind: 'probe', mode: 'udp', outcome: 'failed', streak: 3 }],
      ['up', { kind: 'probe', mode: 'udp', outcome: 'ok', streak: 2 }],
    ]);
  });

  test('a socket that never answers is down in expect mode', () => {
    const bench = new ProbeBench();
    bench.configure([cluster(UDP)]);
    bench.rounds([undefined, undefined, undefined]);
    expect(bench.plan.healthOf('dns', ONE)).toBe('down');
    expect(bench.ended.map(({ outcome }) => outcome)).toEqual(['timeout', 'timeout', 'timeout']);
  });

  test('where no reply is expected silence is unknown and takes nobody down; refusals do, silences between them or not', () => {
    const bench = new ProbeBench();
    bench.configure([cluster({ ...UDP, expectReply: false })]);
    bench.rounds([undefined, undefined, undefined, undefined]);
    expect(bench.ended.map(({ result }) => result)).toEqual(Array(4).fill('unknown'));
    expect(bench.plan.healthOf('dns', ONE)).toBe('up');
    bench.rounds(['refused', undefined, 'refused', undefined, 'refused']);
    expect(bench.plan.healthOf('dns', ONE)).toBe('down');
    bench.rounds(Array.from({ length: 6 }, () => undefined));
    expect(bench.plan.healthOf('dns', ONE)).toBe('up');
  });

  test('a success at the timeout is too late, one microsecond earlier it is not', () => {
    for (const [at, outcome] of [
      [seconds(2), 'timeout'],
      [seconds(2) - 1, 'ok'],
    ] as const) {
      const bench = new ProbeBench();
      bench.configure([cluster({})]);
      bench.answerAt(instant(at), 'ok');
      expect(bench.ended.map((ended) => ended.outcome)).toEqual([outcome]);
    }
  });

  test('an answer to a probe that timed out, was cancelled or never was is ignored', () => {
    const bench = new ProbeBench();
    bench.configure([cluster({})]);
    bench.wake();
    expect(bench.kinds()).toEqual(['StartProbe', 'CancelProbe', 'ProbeEnded']);
    bench.answer('ok', 1);
    bench.answer('ok', 77);
    expect(bench.kinds()).toHaveLength(3);
  });

  test('a probe that this host could not send is no evidence, and the next one keeps its date', () => {
    const bench = new ProbeBench();
    bench.configure([cluster({})]);
    bench.rounds(['refused', 'refused', ...Array<ProbeAnswer>(20).fill('not-tried')]);
    expect(bench.plan.healthOf('dns', ONE)).toBe('up');
    bench.rounds(['refused']);
    expect(bench.plan.healthOf('dns', ONE)).toBe('down');
    bench.rounds(Array<ProbeAnswer>(20).fill('not-tried'));
    expect(bench.plan.healthOf('dns', ONE)).toBe('down');
  });

  test('ProbeEnded says when it began and ended, for the smoothed probe time', () => {
    const bench = new ProbeBench();
    bench.configure([cluster({})]);
    bench.answerAt(instant(milliseconds(3)), 'ok');
    const ended = present(bench.ended[0], 'it ended');
    expect([ended.startedAt, ended.endedAt]).toEqual([0, milliseconds(3)]);
  });
});

describe('reconfiguration', () => {
  test('a_config_change_keeps_the_health_of_unchanged_backends: B6, whatever else changes', () => {
    const bench = new ProbeBench();
    bench.configure([cluster({}, { backends: [ONE, TWO] })]);
    for (let round = 0; round < 3; round += 1) {
      for (const { probe, target } of bench.flying()) {
        bench.answer(target.a === ONE.a ? 'refused' : 'ok', probe);
      }
      while (bench.flying().length < 2) bench.wake();
    }
    expect(bench.plan.healthOf('dns', ONE)).toBe('down');
    bench.configure([cluster({ rise: 7 }, { backends: [TWO, ONE, backend(3)] })]);
    bench.configure([cluster(UDP, { backends: [ONE, TWO] })]);
    expect(bench.plan.healthOf('dns', ONE)).toBe('down');
    expect(bench.plan.healthOf('dns', TWO)).toBe('up');
    expect(bench.changes).toHaveLength(1);
  });

  test('configuring the same again changes nothing and draws nothing', () => {
    const bench = new ProbeBench();
    bench.configure([cluster({}, { backends: [ONE, TWO] })]);
    bench.answer('ok', 1);
    const [wake, state, kinds] = [bench.plan.nextWake(), bench.random.state(), bench.kinds()];
    bench.configure([cluster({}, { backends: [ONE, TWO] })]);
    expect([bench.plan.nextWake(), bench.random.state(), bench.kinds()]).toEqual([
      wake,
      state,
      kinds,
    ]);
  });

  test('a backend that leaves has its probe cancelled; coming back it is new', () => {
    const bench = new ProbeBench();
    bench.configure([cluster({})]);
    bench.rounds(['refused', 'refused', 'refused']);
    bench.wake();
    bench.configure([cluster({}, { backends: [] })]);
    expect(bench.kinds().slice(-2)).toEqual(['StartProbe', 'CancelProbe']);
    expect(bench.plan.targetCount).toBe(0);
    expect(bench.plan.nextWake()).toBeUndefined();
    bench.configure([cluster({})]);
    expect(bench.plan.healthOf('dns', ONE)).toBe('up');
    expect(bench.kinds().at(-1)).toBe('StartProbe');
  });

  test('probing switched off: the probe is cancelled and a backend that is down is up, because nothing else would', () => {
    const bench = new ProbeBench();
    bench.configure([cluster({})]);
    bench.rounds(['refused', 'refused', 'refused']);
    bench.wake();
    bench.configure([cluster({ mode: 'HEALTH_OFF' })]);
    expect(bench.kinds().slice(-2)).toEqual(['CancelProbe', 'HealthChanged']);
    expect(bench.changes.at(-1)).toMatchObject({
      from: 'down',
      to: 'up',
      evidence: { kind: 'unwatched' },
    });
  });

  test('a cluster that leaves takes its schedule and says nothing of health', () => {
    const bench = new ProbeBench();
    bench.configure([cluster({})]);
    bench.rounds(['refused', 'refused', 'refused']);
    bench.configure([]);
    expect(bench.changes).toHaveLength(1);
    expect(bench.plan.nextWake()).toBeUndefined();
  });

  test('backends that come and go leave no memory behind', () => {
    const bench = new ProbeBench();
    for (let round = 0; round < 100; round += 1) {
      bench.configure([cluster({}, { backends: [backend(round), backend(round + 1)] })]);
    }
    expect(Reflect.get(bench.plan, 'targets')).toHaveLength(3);
    expect(bench.flying()).toHaveLength(2);
  });

  test('a new question cancels the old one and is asked at once; new thresholds let it fly', () => {
    const bench = new ProbeBench();
    bench.configure([cluster({})]);
    bench.configure([cluster({ rise: 5, fall: 5, probeTimeout: seconds(9) })]);
    expect(bench.kinds()).toEqual(['StartProbe']);
    bench.configure([cluster({ ...UDP })]);
    expect(bench.kinds()).toEqual(['StartProbe', 'CancelProbe', 'StartProbe']);
    expect(bench.started.at(-1)?.mode).toBe('udp');
    for (const udpProbePayload of [Uint8Array.of(1), Uint8Array.of(1, 2)]) {
      bench.configure([cluster({ ...UDP, udpProbePayload })]);
      expect(bench.started.at(-1)?.payload).toEqual(udpProbePayload);
    }
    const starts = bench.started.length;
    bench.configure([cluster({ ...UDP, udpProbePayload: Uint8Array.of(1, 2) })]);
    expect(bench.started).toHaveLength(starts);
  });

  test('a probe in flight keeps the timeout and the thresholds it was sent under', () => {
    const bench = new ProbeBench();
    bench.configure([cluster({ fall: 1 })]);
    bench.configure([cluster({ fall: 9, probeTimeout: seconds(9) })]);
    bench.wake();
    expect(bench.now).toBe(seconds(2));
    expect(bench.changes).toHaveLength(1);
  });

  test('a shorter interval brings the next probe forward', () => {
    const bench = new ProbeBench();
    bench.configure([cluster({ probeInterval: seconds(3_600) })]);
    bench.answer('ok');
    bench.configure([cluster({ probeInterval: seconds(4) })]);
    const { at } = present(bench.plan.nextWake(), 'a probe is due');
    expect(at).toBeGreaterThanOrEqual(seconds(3));
    expect(at).toBeLessThanOrEqual(seconds(4));
  });
});
