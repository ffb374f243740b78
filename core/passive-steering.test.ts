/** Passive health through both planes: what traffic shows steers new flows, and probes have their say. */
import { describe, expect, test } from 'vitest';
import { ControlBench } from '../test/control-bench.ts';
import {
  addressOf,
  backendsOf,
  clusterSettings,
  configOf,
  listenerConfig,
} from '../test/plane-bench.ts';
import type { ClusterSettings } from './config.ts';
import { healthSettings } from './health/settings.ts';
import { instant, seconds } from './time.ts';

const ONE = '10.0.0.1:53';
const TWO = '10.0.0.2:53';
const THREE = '10.0.0.3:53';

describe('refusals', () => {
  test('of three flows, two of each, take a backend out for new flows; live ones stay', () => {
    const bench = started();
    refuse(bench, ONE);
    expect(bench.events.at(-2)).toMatchObject({
      kind: 'BackendEjected',
      address: addressOf(ONE),
      until: seconds(10),
      evidence: { kind: 'refusals', refusals: 6 },
    });
    expect(bench.events.at(-1)).toMatchObject({ kind: 'Availability', available: 2, total: 3 });
    expect(bench.availability()).toEqual({ available: 2, total: 3 });
    const flows = bench.plane.flowCount;
    expect(bench.places(9)).toEqual([TWO, THREE]);
    expect(bench.plane.flowCount).toBe(flows + 9);
    expect(bench.control.countersOf('c')).toMatchObject({ ejections: 1, healthTransitions: 0 });
  });

  test('one spoofed ICMP never suffices, nor a thousand on one flow', () => {
    const bench = started();
    bench.ask('10.1.0.1:1');
    for (let n = 0; n < 1_000; n += 1) {
      bench.pump.refused(bench.ports.opened[0]!);
      bench.pump.endTurn();
    }
    expect(bench.availability()).toEqual({ available: 3, total: 3 });
  });

  test('end after their time: the backend is in rotation again', () => {
    const bench = started();
    refuse(bench, ONE);
    bench.runUntil(10);
    expect(bench.events.at(-2)).toMatchObject({ kind: 'BackendReturned', reason: 'time-over' });
    expect(bench.places(9)).toEqual([ONE, TWO, THREE]);
  });

  test('an active probe confirms where there is one: what it says decides', () => {
    for (const manner of ['ok', 'refused'] as const) {
      const bench = started({ health: healthSettings({}) });
      bench.runUntil(0.5);
      const before = bench.probes.length;
      for (const address of [ONE, TWO, THREE]) bench.behave(address, manner);
      refuse(bench, ONE);
      expect(bench.probes.slice(before).map(({ target }) => target)).toEqual([addressOf(ONE)]);
      const available = manner === 'ok' ? 3 : 2;
      expect(bench.availability()).toEqual({ available, total: 3 });
    }
  });

  test('are void when the backend is heard again', () => {
    const bench = started();
    refuse(bench, ONE, 1);
    const flow = bench.opened(ONE)[0]!;
    bench.pump.backendDatagram(flow, Uint8Array.of(1));
    bench.pump.endTurn();
    refuse(bench, ONE, 1);
    expect(bench.availability()).toEqual({ available: 3, total: 3 });
  });

  test('never take out the only backend', () => {
    const bench = started({ backends: backendsOf(1) });
    refuse(bench, ONE);
    expect(bench.availability()).toEqual({ available: 1, total: 1 });
  });

  test('are no evidence where the operator says so, and switching it off ends what they did', () => {
    const off = started({ passive: false });
    refuse(off, ONE);
    expect(off.availability()).toEqual({ available: 3, total: 3 });
    const bench = started();
    refuse(bench, ONE);
    bench.configure(configOf([cluster({ passive: false })], listeners));
    expect(bench.availability()).toEqual({ available: 3, total: 3 });
    expect(bench.places(9)).toEqual([ONE, TWO, THREE]);
  });
});

describe('missing answers', () => {
  test('a backend that stops answering is out in under three seconds, by its traffic alone', () => {
    const bench = started({ exchange: 'request-response' });
    bench.places(30);
    converse(bench, 5, () => true);
    expect(bench.availability()).toEqual({ available: 3, total: 3 });
    const silentFrom = bench.ports.clock;
    converse(bench, 3, (address) => address !== TWO);
    expect(bench.availability()).toEqual({ available: 2, total: 3 });
    const ejected = bench.events.find(({ kind }) => kind === 'BackendEjected');
    expect(ejected).toMatchObject({ address: addressOf(TWO), evidence: { kind: 'answers' } });
    expect(bench.ejectedAt! - silentFrom).toBeLessThan(seconds(3));
  });

  test('a one-way cluster is never judged by answers', () => {
    for (const exchange of ['one-way', undefined] as const) {
      const bench = started({ exchange });
      bench.places(30);
      converse(bench, 20, (address) => address !== TWO);
      expect(bench.availability()).toEqual({ available: 3, total: 3 });
    }
  });
});

test('a backend that was down before its traffic was watched is not taken for one in rotation', () => {
  const two = { backends: backendsOf(1, 2), health: healthSettings({}) };
  const bench = started({ ...two, passive: false });
  bench.behave(ONE, 'refused');
  bench.runUntil(20);
  expect(bench.healthOf(ONE)).toBe('down');
  bench.configure(configOf([cluster({ ...two, passive: true })], listeners));
  for (const address of [ONE, TWO]) bench.behave(address, 'silent');
  refuse(bench, TWO);
  bench.runUntil(25);
  expect(bench.events.some(({ kind }) => kind === 'BackendEjected')).toBe(false);
});

test('a new configuration keeps an ejection', () => {
  const bench = started();
  refuse(bench, ONE);
  bench.configure(configOf([cluster({ loadBalancing: 'RANDOM' })], listeners));
  expect(bench.places(40)).toEqual([TWO, THREE]);
});

const listeners = [listenerConfig({ maxFlows: 1_000 })];

function cluster(more: Partial<ClusterSettings>): ClusterSettings {
  return clusterSettings({ backends: backendsOf(1, 2, 3), ...more });
}

function started(more: Partial<ClusterSettings> = {}): ControlBench {
  const bench = new ControlBench();
  for (const address of [ONE, TWO, THREE]) bench.behave(address, 'ok');
  bench.configure(configOf([cluster(more)], listeners));
  return bench;
}

/** Three new flows of the backend at `address` hear so many refusals each. */
function refuse(bench: ControlBench, address: string, each = 2): void {
  const before = bench.opened(address).length;
  while (bench.opened(address).length < before + 3) bench.askAnew();
  for (const flow of bench.opened(address).slice(-3)) {
    for (let n = 0; n < each; n += 1) {
      bench.pump.refused(flow);
      bench.pump.endTurn();
    }
  }
}

/** Each of thirty flows asks ten times a second; `answers` says which backends do. */
function converse(bench: ControlBench, time: number, answers: (address: string) => boolean): void {
  const end = bench.ports.clock + seconds(time);
  while (bench.ports.clock < end) {
    bench.runUntil(instant(bench.ports.clock + 100_000) / 1_000_000);
    for (let n = 1; n <= 30; n += 1) bench.ask(`10.9.0.1:${1_000 + n}`);
    for (const address of [ONE, TWO, THREE]) {
      if (!answers(address)) continue;
      for (const flow of bench.opened(address)) bench.pump.backendDatagram(flow, Uint8Array.of(1));
    }
    bench.pump.endTurn();
  }
}
