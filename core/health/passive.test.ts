/** What traffic does to a backend, word by word. */
import { describe, expect, test } from 'vitest';
import { backend, PassiveBench } from '../../test/passive-bench.ts';
import { present } from '../assert.ts';
import { instant, milliseconds, seconds } from '../time.ts';
import { passiveSettings } from './passive-contract.ts';
import {
  EJECTION_BASE,
  EJECTION_CAP,
  EJECTION_FORGIVEN,
  PassiveHealth,
  SUSPICION_PAUSE,
} from './passive.ts';
import { healthSettings } from './settings.ts';

const ALONE = passiveSettings('request-response', undefined);
const WITH_TCP = passiveSettings('request-response', healthSettings({}));
const WITH_UDP = passiveSettings(
  'request-response',
  healthSettings({ mode: 'UDP_PROBE', udpProbePayload: Uint8Array.of(1) }),
);

describe('refusals', () => {
  test('one forged refusal never suffices, nor one flow that hears a thousand', () => {
    const bench = new PassiveBench(ALONE, 3);
    for (let count = 0; count < 1_000; count += 1) bench.refuse(0, 7);
    expect(bench.log).toEqual([]);
  });

  test('two refusals of each of three flows eject, and say so', () => {
    const bench = new PassiveBench(ALONE, 3);
    bench.refuseEnough(0);
    expect(bench.log).toEqual([
      {
        kind: 'Ejected',
        address: backend(0),
        until: EJECTION_BASE,
        evidence: { kind: 'refusals', refusals: 6 },
      },
    ]);
    expect(bench.passive.isEjected(backend(0))).toBe(true);
  });

  test('they count on a one-way cluster too', () => {
    const bench = new PassiveBench(passiveSettings('one-way', undefined), 3);
    bench.refuseEnough(0);
    expect(bench.kinds()).toEqual(['Ejected']);
  });

  test('whoever answers is there: its refusals are void', () => {
    const bench = new PassiveBench(ALONE, 3);
    for (const flow of [1, 2, 3, 1, 2]) bench.refuse(0, flow);
    bench.answer(0, 1);
    bench.refuse(0, 3);
    expect(bench.log).toEqual([]);
  });
});

describe('answers', () => {
  test('a stopped backend is out in under three seconds, by its traffic alone', () => {
    for (let stop = 0; stop < 500; stop += 50) {
      const bench = new PassiveBench(ALONE, 3);
      bench.traffic(milliseconds(4_000 + stop), () => true);
      const stopped = bench.now;
      bench.traffic(seconds(3), (slot) => slot !== 0);
      const ejected = present(bench.told('Ejected')[0], 'it was ejected');
      expect(ejected.evidence.kind).toBe('answers');
      expect(ejected.until - EJECTION_BASE - stopped).toBeLessThan(seconds(3));
      expect(bench.passive.ejectedCount).toBe(1);
    }
  });

  test('a one-way cluster is never judged by answers, nor one of which nobody said how it talks', () => {
    for (const exchange of ['one-way', undefined] as const) {
      const bench = new PassiveBench(passiveSettings(exchange, undefined), 3);
      bench.traffic(seconds(10), (slot) => slot !== 0);
      expect(bench.log).toEqual([]);
      expect(bench.passive.nextWake()).toBeUndefined();
    }
  });

  test('where no backend answers nobody is ejected: the requests are at fault', () => {
    const bench = new PassiveBench(ALONE, 3);
    bench.traffic(seconds(10), () => false);
    expect(bench.log).toEqual([]);
  });

  test('a backend that is asked too rarely is not judged', () => {
    const bench = new PassiveBench(ALONE, 3);
    bench.traffic(seconds(10), (slot) => slot !== 0, milliseconds(250));
    expect(bench.log).toEqual([]);
  });

  test('nonsense that a client sends to one backend does not eject it while others are answered there', () => {
    const bench = new PassiveBench(ALONE, 3);
    for (let round = 0; round < 100; round += 1) {
      bench.forward(0, 200);
      bench.traffic(milliseconds(100), () => true);
    }
    expect(bench.log).toEqual([]);
  });

  test('backends are compared while there is traffic, and nobody is woken after it', () => {
    const bench = new PassiveBench(ALONE, 2);
    bench.forward(0, 1);
    expect(bench.passive.nextWake()).toEqual({ at: milliseconds(500), reason: 'answers-compared' });
    for (let round = 0; round < 4; round += 1) bench.wake();
    expect(bench.passive.nextWake()).toBeUndefined();
  });

  test('a change to one-way forgets the answers, a suspicion on their account included', () => {
    const bench = new PassiveBench(WITH_UDP, 3);
    bench.traffic(seconds(3), (slot) => slot !== 0);
    expect(bench.kinds()).toEqual(['ConfirmRequested']);
    bench.configure(passiveSettings('one-way', undefined), 3);
    bench.passes(seconds(60));
    expect(bench.kinds()).toEqual(['ConfirmRequested']);
  });
});

describe('a probe confirms where there is one that could say otherwise', () => {
  test('of refusals a TCP probe is asked: up acquits, and for a pause nothing is held against the backend', () => {
    const bench = new PassiveBench(WITH_TCP, 3);
    bench.refuseEnough(0);
    expect(bench.kinds()).toEqual(['ConfirmRequested']);
    expect(bench.passive.isEjected(backend(0)), 'it serves meanwhile').toBe(false);
    bench.probe(0, 'up');
    bench.refuseEnough(0);
    bench.passes(instant(SUSPICION_PAUSE - 1));
    bench.refuseEnough(0);
    expect(bench.kinds()).toEqual(['ConfirmRequested']);
    bench.passes(milliseconds(1));
    bench.refuse(0, 4);
    expect(bench.kinds(), 'what came before is void').toEqual(['ConfirmRequested']);
    bench.refuseEnough(0);
    expect(bench.kinds()).toEqual(['ConfirmRequested', 'ConfirmRequested']);
  });

  test.each(['down', 'unknown'] as const)('a probe that says %s does not acquit', (result) => {
    const bench = new PassiveBench(WITH_TCP, 3);
    bench.refuseEnough(0);
    bench.probe(0, result);
    expect(bench.kinds()).toEqual(['ConfirmRequested', 'Ejected']);
  });

  test('of missing answers a TCP probe is not asked: the kernel of a stopped process accepts connections', () => {
    const tcp = new PassiveBench(WITH_TCP, 3);
    tcp.traffic(seconds(3), (slot) => slot !== 0);
    expect(tcp.kinds()).toEqual(['Ejected']);
    const udp = new PassiveBench(WITH_UDP, 3);
    udp.traffic(seconds(3), (slot) => slot !== 0);
    expect(udp.kinds()).toEqual(['ConfirmRequested']);
  });

  test('a probe that does not come in its time leaves the decision to the evidence', () => {
    const bench = new PassiveBench(WITH_TCP, 3);
    bench.refuseEnough(0);
    expect(bench.passive.nextWake()).toEqual({ at: seconds(3), reason: 'confirmation-overdue' });
    bench.wake();
    expect(bench.kinds()).toEqual(['ConfirmRequested', 'Ejected']);
  });

  test('an answer withdraws a suspicion of refusals, not one of missing answers', () => {
    const refused = new PassiveBench(WITH_UDP, 3);
    refused.refuseEnough(0);
    refused.answer(0, 1);
    refused.passes(seconds(30));
    expect(refused.kinds()).toEqual(['ConfirmRequested']);
    const silent = new PassiveBench(WITH_UDP, 3);
    silent.traffic(seconds(3), (slot) => slot !== 0);
    silent.answer(0, 1);
    silent.probe(0, 'down');
    expect(silent.kinds()).toEqual(['ConfirmRequested', 'Ejected']);
  });

  test('a probe of a backend that nobody doubts is no news', () => {
    const bench = new PassiveBench(WITH_TCP, 3);
    bench.probe(0, 'down');
    expect(bench.log).toEqual([]);
  });

  test('the settings say which probes could: none, TCP for refusals, UDP for both', () => {
    expect(ALONE.confirm).toBe('none');
    expect(passiveSettings('one-way', healthSettings({ mode: 'HEALTH_OFF' })).confirm).toBe('none');
    expect([WITH_TCP.confirm, WITH_UDP.confirm]).toEqual(['refusals', 'all']);
    const slow = passiveSettings('one-way', healthSettings({ probeTimeout: seconds(9) }));
    expect(slow.confirmWait).toBe(seconds(10));
  });
});

describe('ejection', () => {
  test('ends after its time, and lasts twice as long each time, up to the cap', () => {
    const bench = new PassiveBench(ALONE, 3);
    const lengths: number[] = [];
    for (let round = 0; round < 8; round += 1) {
      bench.refuseEnough(0);
      const { at, reason } = present(bench.passive.nextWake(), 'an ejection ends');
      expect(reason).toBe('ejection-over');
      lengths.push(at - bench.now);
      bench.wake();
      expect(bench.log.at(-1)).toEqual({
        kind: 'Returned',
        address: backend(0),
        reason: 'time-over',
      });
    }
    const doubled = [1, 2, 4, 8, 16].map((factor) => factor * EJECTION_BASE);
    expect(lengths).toEqual([...doubled, EJECTION_CAP, EJECTION_CAP, EJECTION_CAP]);
  });

  test('is forgiven after the backend served for long', () => {
    const bench = new PassiveBench(ALONE, 3);
    const eject = (): number => {
      bench.refuseEnough(0);
      const length = present(bench.passive.nextWake(), 'an ejection ends').at - bench.now;
      bench.wake();
      return length;
    };
    eject();
    bench.passes(instant(EJECTION_FORGIVEN - 1));
    expect(eject()).toBe(2 * EJECTION_BASE);
    bench.passes(EJECTION_FORGIVEN);
    expect(eject()).toBe(EJECTION_BASE);
  });

  test('takes nothing along: what was seen before or meanwhile is not held against who returns', () => {
    const bench = new PassiveBench(ALONE, 3);
    bench.refuseEnough(0);
    bench.refuseEnough(0);
    for (const flow of [1, 2, 3, 1, 2]) bench.refuse(0, flow);
    bench.wake();
    bench.refuse(0, 3);
    expect(bench.kinds()).toEqual(['Ejected', 'Returned']);
  });

  test('a backend that returns has a second to answer, whatever its old flows met meanwhile', () => {
    const bench = new PassiveBench(ALONE, 3);
    bench.traffic(seconds(30), (number) => number !== 0);
    const [first, second] = bench.told('Ejected');
    const returned = present(first, 'it was ejected').until;
    const again = present(second, 'and again').until - 2 * EJECTION_BASE;
    expect(again - returned).toBeGreaterThan(milliseconds(500));
    expect(again - returned).toBeLessThan(seconds(3));
  });

  test('never takes the only backend, and counts that it did not', () => {
    const bench = new PassiveBench(ALONE, 1);
    bench.refuseEnough(0);
    expect(bench.log).toEqual([]);
    expect(bench.passive.withheldCount).toBe(1);
  });

  test('never takes more than half of a cluster', () => {
    for (const [backends, most] of [
      [2, 1],
      [3, 1],
      [4, 2],
      [5, 2],
    ] as const) {
      const bench = new PassiveBench(ALONE, backends);
      for (let slot = 0; slot < backends; slot += 1) bench.refuseEnough(slot);
      expect(bench.passive.ejectedCount).toBe(most);
      expect(bench.passive.withheldCount).toBe(backends - most);
    }
  });

  test('never takes the last one that probes and operators let serve; nor is a probe asked then', () => {
    const bench = new PassiveBench(WITH_TCP, 4);
    for (const slot of [1, 2, 3]) bench.setAvailable(slot, false);
    bench.refuseEnough(0);
    expect(bench.log).toEqual([]);
  });

  test('ends when nobody else is left: the doubted serve rather than nobody', () => {
    const bench = new PassiveBench(ALONE, 2);
    bench.refuseEnough(0);
    bench.setAvailable(1, false);
    expect(bench.log.at(-1)).toEqual({
      kind: 'Returned',
      address: backend(0),
      reason: 'last-available',
    });
    const removed = new PassiveBench(ALONE, 2);
    removed.refuseEnough(1);
    removed.configure(ALONE, [backend(1)]);
    expect(removed.kinds()).toEqual(['Ejected', 'Returned']);
  });

  test('one that is down for its probes is left to them: nothing is held against it', () => {
    const bench = new PassiveBench(ALONE, 3);
    bench.setAvailable(0, false);
    bench.refuseEnough(0);
    for (const flow of [1, 2, 3, 1, 2]) bench.refuse(0, flow);
    bench.setAvailable(0, true);
    bench.refuse(0, 3);
    expect(bench.log).toEqual([]);
  });

  test('a suspicion ends when the probes take the backend out themselves', () => {
    const bench = new PassiveBench(WITH_TCP, 3);
    bench.refuseEnough(0);
    bench.setAvailable(0, false);
    bench.passes(seconds(60));
    expect(bench.kinds()).toEqual(['ConfirmRequested']);
  });

  test('is not ended by a backend that could not serve anyhow', () => {
    const bench = new PassiveBench(ALONE, 2);
    bench.refuseEnough(0);
    bench.setAvailable(0, false);
    bench.setAvailable(1, false);
    expect(bench.kinds()).toEqual(['Ejected']);
    bench.setAvailable(0, true);
    expect(bench.kinds()).toEqual(['Ejected', 'Returned']);
  });
});

describe('reconfiguration', () => {
  test('a backend that stays keeps its slot and its ejection; one that comes back is new', () => {
    const bench = new PassiveBench(ALONE, 4);
    bench.refuseEnough(2);
    bench.configure(ALONE, [backend(3), backend(2), backend(9)]);
    expect(bench.passive.slotOf(backend(2))).toBe(2);
    expect(bench.passive.isEjected(backend(2))).toBe(true);
    bench.configure(ALONE, [backend(3)]);
    expect(bench.passive.slotOf(backend(2))).toBeUndefined();
    expect(bench.passive.nextWake()).toBeUndefined();
    bench.configure(ALONE, [backend(3), backend(2)]);
    expect(bench.passive.isEjected(backend(2))).toBe(false);
    expect(bench.kinds()).toEqual(['Ejected']);
  });
});

test('an input before every output was polled, and time that goes back, are bugs of the caller', () => {
  const passive = new PassiveHealth(ALONE);
  passive.configure(ALONE, [backend(0), backend(1)], instant(5));
  expect(() => passive.handleTimeout(instant(4))).toThrow('time does not go back');
  for (const flow of [1, 2, 3, 1, 2, 3]) passive.refused(0, flow, instant(5));
  expect(() => passive.handleTimeout(instant(5))).toThrow('every output');
});
