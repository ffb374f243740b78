import { describe, expect, test } from 'vitest';
import { ControlBench } from '../test/control-bench.ts';
import {
  addressOf,
  backendsOf,
  clusterSettings,
  configOf,
  listenerConfig,
} from '../test/plane-bench.ts';
import { listenerId, requestId } from './brand.ts';
import { CLUSTER_CATALOGUE } from './cluster-metrics.ts';
import { ControlPlane } from './control-plane.ts';
import { healthSettings, type HealthSettings } from './health/settings.ts';
import { instant, seconds } from './time.ts';

const ONE = '10.0.0.1:53';
const TWO = '10.0.0.2:53';
const FAST: Partial<HealthSettings> = { probeInterval: seconds(1), probeTimeout: seconds(1) };

describe('starting', () => {
  test('clusters come before listeners, and the first probes at once, each with its generation', () => {
    const bench = started();
    expect(
      bench.directives.map(({ generation, directive }) => [generation, directive.kind]),
    ).toEqual([
      [1, 'SetCluster'],
      [1, 'AddListener'],
    ]);
    expect(bench.probes.map(({ target }) => target)).toEqual([addressOf(ONE), addressOf(TWO)]);
    expect(bench.reports).toMatchObject([{ kind: 'ListenerOpened', generation: 1 }]);
  });

  test('import_configuration_state_latches_cluster_rollup_gauges: the gauges are there with the configuration', () => {
    const bench = started();
    expect(bench.events).toEqual([{ kind: 'Availability', cluster: 'c', available: 2, total: 2 }]);
    expect(bench.control.countersOf('c')).toMatchObject({ availableBackends: 2, totalBackends: 2 });
    expect(bench.control.countersOf('d')).toBeUndefined();
  });

  test('a cluster without a health table is never probed, and all its backends are available', () => {
    const bench = new ControlBench();
    bench.configure(configOf());
    bench.settle();
    expect(bench.probes).toEqual([]);
    expect(bench.wake).toBeUndefined();
    expect(bench.availability()).toEqual({ available: 2, total: 2 });
  });

  test('an input that finds outputs left over is a bug of the caller', () => {
    const control = new ControlPlane({ randomSeed: { high: 1, low: 2 } });
    const command = { kind: 'Reload', config: configOf() } as const;
    const input = { kind: 'Command', request: requestId(1), command } as const;
    control.handleInput(input, instant(0));
    expect(() => control.handleTimeout(instant(0))).toThrow('drained');
    expect(() => control.handleInput(input, instant(0))).toThrow('drained');
  });
});

describe('a backend that dies', () => {
  test.each(['refused', 'failed', 'silent'] as const)(
    'leaves rotation for new flows within fall × interval + timeout, and comes back: %s',
    (manner) => {
      const bench = started();
      bench.runUntil(10);
      expect(bench.places(4)).toEqual([ONE, TWO]);
      bench.behave(ONE, manner);
      bench.runUntil(10 + 3 * 1 + 1);
      expect(bench.healthOf(ONE)).toBe('down');
      expect(bench.places(4)).toEqual([TWO]);
      bench.behave(ONE, 'ok');
      bench.runUntil(14 + 2 * 1 + 1);
      expect(bench.places(4)).toEqual([ONE, TWO]);
      expect(bench.control.countersOf('c')).toMatchObject({ healthTransitions: 2 });
    },
  );

  test('keeps its live flows: health steers new ones only', () => {
    const bench = started();
    expect(bench.ask('10.1.0.1:1')).toBe(ONE);
    bench.behave(ONE, 'refused');
    bench.runUntil(10);
    expect(bench.healthOf(ONE)).toBe('down');
    expect(bench.ask('10.1.0.1:1')).toBeUndefined();
    expect(bench.ports.calls).toContain(`send u1 ${String.fromCharCode(1)}`);
    expect(bench.plane.flowCount).toBe(1);
  });

  test('is told with its evidence, and counted', () => {
    const bench = started();
    bench.behave(ONE, 'refused');
    bench.settle();
    const address = addressOf(ONE);
    expect(bench.events.slice(1)).toEqual([
      {
        kind: 'HealthChanged',
        cluster: 'c',
        address,
        from: 'up',
        to: 'down',
        evidence: { kind: 'probe', mode: 'tcp', outcome: 'refused', streak: 3 },
      },
      { kind: 'Availability', cluster: 'c', available: 1, total: 2 },
    ]);
    expect(bench.availability()).toEqual({ available: 1, total: 2 });
  });
});

describe('when all are down', () => {
  test('fail_open_warn_latched: it is told once, and so is the end of it', () => {
    const bench = allDown({});
    expect(bench.events.filter(({ kind }) => kind === 'NoAvailableBackends')).toEqual([
      { kind: 'NoAvailableBackends', cluster: 'c', total: 2, failOpen: true },
    ]);
    bench.settle();
    expect(bench.kinds()).toEqual(['HealthChanged', 'HealthChanged', 'NoAvailableBackends']);
    bench.behave(TWO, 'ok');
    bench.settle();
    bench.behave(ONE, 'ok');
    bench.settle();
    expect(bench.kinds().slice(3)).toEqual(['HealthChanged', 'ClusterRecovered', 'HealthChanged']);
    expect(bench.control.countersOf('c')).toMatchObject({
      noAvailableBackends: 1,
      availableRecovered: 1,
      healthTransitions: 4,
      availableBackends: 2,
    });
  });

  test('fail_open = true: every backend is tried, and counted', () => {
    const bench = allDown({});
    expect(bench.places(4)).toEqual([ONE, TWO]);
    expect(bench.plane.clusters.backendsOf('c')?.failOpenSelections).toBe(4);
  });

  test('B5: fail_open = false is honoured: new flows are dropped as no_backend, live ones go on', () => {
    const bench = started({ failOpen: false });
    expect(bench.ask('10.1.0.1:1')).toBe(ONE);
    bench.behave(ONE, 'refused');
    bench.behave(TWO, 'refused');
    bench.runUntil(10);
    expect(bench.places(4)).toEqual(['nowhere']);
    expect(bench.ask('10.1.0.1:1')).toBeUndefined();
    const counters = bench.plane.countersOf(listener)!;
    expect(counters).toMatchObject({ droppedNoBackend: 4, forwarded: 2, flowsCreated: 1 });
    expect(bench.plane.clusters.backendsOf('c')?.failOpenSelections).toBe(0);
    expect(bench.events.at(-1)).toMatchObject({ kind: 'NoAvailableBackends', failOpen: false });
    bench.behave(TWO, 'ok');
    bench.settle();
    expect(bench.places(4)).toEqual([TWO]);
  });

  test('B5: each mode is one kind of probe, and the companion port is what was written', () => {
    const tcp = started({ mode: 'TCP_PROBE', tcpPort: 65_535, udpProbePayload: Uint8Array.of(1) });
    expect(tcp.probes.map(({ mode, target }) => [mode, target.port])).toEqual([
      ['tcp', 65_535],
      ['tcp', 65_535],
    ]);
    const udp = started({ mode: 'UDP_PROBE', tcpPort: 80, udpProbePayload: Uint8Array.of(1) });
    expect(udp.probes.map(({ mode, target }) => [mode, target.port])).toEqual([
      ['udp', 53],
      ['udp', 53],
    ]);
  });

  test('fail_open can be switched while they are down', () => {
    const bench = allDown({});
    bench.configure(configOf([cluster({ failOpen: false })]));
    expect(bench.places(4)).toEqual(['nowhere']);
    bench.configure(configOf([cluster({})]));
    expect(bench.places(4)).toEqual([ONE, TWO]);
  });
});

describe('a new configuration', () => {
  test('B6: keeps the health of unchanged backends, whatever else changes', () => {
    const bench = started();
    bench.behave(ONE, 'refused');
    bench.settle();
    bench.configure(
      configOf(
        [cluster({ rise: 3 }, { loadBalancing: 'RANDOM', backends: backendsOf(3, 1, 2) })],
        [listenerConfig({ maxFlows: 100 })],
      ),
    );
    expect(bench.healthOf(ONE)).toBe('down');
    expect(bench.availability()).toEqual({ available: 2, total: 3 });
    expect(bench.places(40)).toEqual([TWO, '10.0.0.3:53']);
    expect(bench.events.at(-1)).toMatchObject({ kind: 'Availability', available: 2, total: 3 });
  });

  test('says again who is up and who is down, with its own generation, whatever a data plane remembers', () => {
    const bench = started();
    bench.behave(ONE, 'refused');
    bench.settle();
    bench.directives.length = 0;
    bench.configure(configOf([cluster({ rise: 3 })], [listenerConfig({ maxFlows: 100 })]));
    expect(bench.directives).toMatchObject([
      { generation: 2, directive: { kind: 'SetCluster' } },
      {
        generation: 2,
        directive: { kind: 'SetHealth', address: addressOf(ONE), healthy: false },
      },
      {
        generation: 2,
        directive: { kind: 'SetHealth', address: addressOf(TWO), healthy: true },
      },
    ]);
  });

  test('a backend that left comes back as a new one, up, to both planes', () => {
    const bench = started();
    bench.behave(ONE, 'refused');
    bench.settle();
    bench.configure(configOf([cluster({}, { backends: backendsOf(2) })]));
    bench.configure(configOf([cluster({})]));
    expect(bench.healthOf(ONE)).toBe('up');
    expect(bench.availability()).toEqual({ available: 2, total: 2 });
  });

  test('set_health_check_config_none_re_emits_rollup_after_reset: without a health table every backend is up', () => {
    const bench = allDown({});
    bench.configure(configOf([clusterSettings()]));
    expect(bench.availability()).toEqual({ available: 2, total: 2 });
    expect(bench.kinds().slice(3)).toEqual(['HealthChanged', 'ClusterRecovered', 'HealthChanged']);
    expect(bench.events.at(-1)).toMatchObject({ kind: 'Availability', available: 2 });
    expect(bench.flying.size).toBe(0);
    expect(bench.wake).toBeUndefined();
  });

  test('a cluster that is gone is forgotten with its probes and counters', () => {
    const bench = started();
    bench.runUntil(0.5);
    expect(bench.flying.size).toBe(0);
    bench.behave(ONE, 'silent');
    bench.runUntil(1);
    expect(bench.flying.size).toBe(1);
    bench.configure(configOf([clusterSettings({ cluster: 'd' })]));
    expect(bench.flying.size).toBe(0);
    expect(bench.control.countersOf('c')).toBeUndefined();
    expect(bench.control.countersOf('d')).toMatchObject({ totalBackends: 2 });
  });

  test('a cluster that was away comes back with all its backends up, though the data plane kept it', () => {
    const bench = started();
    bench.behave(ONE, 'refused');
    bench.settle();
    bench.configure(configOf([clusterSettings({ cluster: 'd' })]));
    bench.configure(configOf([cluster({})]));
    expect(bench.availability()).toEqual({ available: 2, total: 2 });
  });
});

describe('stopping', () => {
  test('a hard stop cancels every probe and asks for no timer', () => {
    const bench = started({}, 'silent');
    expect(bench.flying.size).toBe(2);
    bench.controlPump.stop();
    expect(bench.reports.at(-1)).toMatchObject({ kind: 'Stopped', flowsClosed: 0 });
    expect(bench.flying.size).toBe(0);
    expect(bench.wake).toBeUndefined();
    const [probe] = bench.probes;
    bench.answer(probe!.probe, 'ok');
    expect(bench.wake).toBeUndefined();
  });

  test('a soft stop probes on while flows are left, and cancels everything when the last has gone', () => {
    const bench = started({}, 'silent');
    bench.ask('10.1.0.1:1');
    bench.controlPump.drain();
    expect(bench.directives.at(-1)?.directive).toEqual({ kind: 'Drain', deadline: seconds(5) });
    bench.runUntil(4);
    expect(bench.flying.size).toBeGreaterThan(0);
    bench.ports.clock = instant(5_000_000);
    bench.pump.timer();
    bench.pump.endTurn();
    expect(bench.reports.at(-1)).toMatchObject({ kind: 'Stopped', flowsClosed: 1 });
    expect(bench.flying.size).toBe(0);
    expect(bench.wake).toBeUndefined();
  });
});

describe('probes', () => {
  test('those of a PPv2 cluster carry a LOCAL header', () => {
    const bench = new ControlBench();
    const udp = { mode: 'UDP_PROBE', udpProbePayload: Uint8Array.of(7) } as const;
    bench.configure(configOf([cluster(udp, { sendProxyProtocol: true })]));
    expect(bench.probes[0]?.header).toHaveLength(16);
    expect(bench.probes[0]?.payload).toEqual(Uint8Array.of(7));
  });

  test('their time steers CONNECTION_TIME, and costs other clusters no directive', () => {
    const bench = new ControlBench();
    bench.configure(configOf([cluster({}, { loadBalancing: 'LEAST_LOADED' })]));
    bench.answer(1, 'ok');
    expect(bench.directives.map(({ directive }) => directive.kind)).not.toContain('SetProbeTime');
    const timed = { loadBalancing: 'LEAST_LOADED', loadMetric: 'CONNECTION_TIME' } as const;
    const other = new ControlBench();
    other.configure(configOf([cluster({}, timed)]));
    other.ports.clock = instant(1_000);
    other.answer(2, 'ok');
    other.ports.clock = instant(2_000);
    other.answer(1, 'ok');
    expect(other.places(5)).toEqual([TWO]);
    const failing = new ControlBench();
    failing.configure(configOf([cluster({}, timed)]));
    failing.answer(1, 'refused');
    expect(failing.directives.map(({ directive }) => directive.kind)).not.toContain('SetProbeTime');
  });

  test('each end is counted by what it said', () => {
    const bench = new ControlBench();
    bench.configure(
      configOf([
        cluster({ mode: 'UDP_PROBE', udpProbePayload: Uint8Array.of(1), expectReply: false }),
      ]),
    );
    bench.behave(ONE, 'not-tried');
    bench.answer(1, 'ok');
    bench.answer(2, 'refused');
    bench.runUntil(2);
    const { probesOk, probesFailed, probesSilent, probesNotTried } = bench.control.countersOf('c')!;
    expect([probesOk, probesFailed]).toEqual([1, 1]);
    expect(probesSilent).toBeGreaterThan(0);
    expect(probesNotTried).toBeGreaterThan(0);
  });

  test('no more are in flight than the bound says', () => {
    const bench = new ControlBench(1);
    bench.configure(configOf([cluster({})]));
    expect(bench.control.probesInFlight).toBe(1);
    bench.answer(1, 'ok');
    expect(bench.probes).toHaveLength(2);
  });
});

test('every cluster counter is in the catalogue, under a name of its own', () => {
  const bench = started();
  const names = Object.values(CLUSTER_CATALOGUE).map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect([...Object.keys(bench.control.countersOf('c')!), 'failOpen'].sort()).toEqual(
    Object.keys(CLUSTER_CATALOGUE).sort(),
  );
});

const listener = listenerId(0);

function cluster(
  health: Partial<HealthSettings>,
  more: Partial<Parameters<typeof clusterSettings>[0]> = {},
): ReturnType<typeof clusterSettings> {
  return clusterSettings({ ...more, health: healthSettings({ ...FAST, ...health }) });
}

/** Two backends that answer every probe with `manner`. */
function started(
  health: Partial<HealthSettings> = {},
  manner: 'ok' | 'silent' = 'ok',
): ControlBench {
  const bench = new ControlBench();
  for (const address of [ONE, TWO]) bench.behave(address, manner);
  bench.configure(configOf([cluster(health)], [listenerConfig({ maxFlows: 100 })]));
  return bench;
}

function allDown(health: Partial<HealthSettings>): ControlBench {
  const bench = started(health);
  for (const address of [ONE, TWO]) bench.behave(address, 'refused');
  bench.settle();
  return bench;
}
