/** Any configurations, answers, clients and waits, in any order, against a naive account of what each probe met. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { ControlBench } from '../test/control-bench.ts';
import { backendsOf, clusterSettings, configOf, listenerConfig } from '../test/plane-bench.ts';
import { formatAddress } from './address.ts';
import type { ClusterSettings } from './config.ts';
import type { Probe } from './control-contract.ts';
import { INITIAL_HEALTH, judge, type HealthState } from './health/hysteresis.ts';
import type { ProbeAnswer } from './health/probe-contract.ts';
import { healthSettings, type HealthSettings } from './health/settings.ts';
import { seconds, until, type Instant } from './time.ts';

type Act =
  | { readonly kind: 'configure'; readonly clusters: readonly ClusterSettings[] }
  | { readonly kind: 'answer'; readonly pick: number; readonly answer: ProbeAnswer }
  /** All flows of one flow's backend hear so many refusals, or the flow a datagram from it. */
  | { readonly kind: 'refused'; readonly flow: number; readonly count: number }
  | { readonly kind: 'heard'; readonly flow: number }
  | { readonly kind: 'wait'; readonly seconds: number }
  | { readonly kind: 'client' };

const clusterArbitrary = (name: string): fc.Arbitrary<ClusterSettings> =>
  fc
    .record({
      health: fc.option(
        fc.record({
          mode: fc.constantFrom('TCP_PROBE' as const, 'UDP_PROBE' as const),
          expectReply: fc.boolean(),
          failOpen: fc.boolean(),
          rise: fc.integer({ min: 1, max: 3 }),
          fall: fc.integer({ min: 1, max: 3 }),
          probeInterval: fc.integer({ min: 1, max: 4 }).map(seconds),
          probeTimeout: fc.integer({ min: 1, max: 4 }).map(seconds),
        }),
        { nil: undefined, freq: 8 },
      ),
      backends: fc.subarray([1, 2, 3], { minLength: 1 }),
      loadBalancing: fc.constantFrom('ROUND_ROBIN', 'RANDOM', 'HRW', 'MAGLEV'),
      exchange: fc.constantFrom('request-response' as const, 'one-way' as const),
      passive: fc.oneof({ weight: 5, arbitrary: fc.constant(true) }, fc.boolean()),
    })
    .map(({ health, backends, loadBalancing, exchange, passive }) =>
      clusterSettings({
        cluster: name,
        loadBalancing,
        exchange,
        passive,
        backends: backendsOf(...backends),
        health:
          health === undefined
            ? undefined
            : healthSettings({ ...health, udpProbePayload: Uint8Array.of(1) }),
      }),
    );

const configurations: fc.Arbitrary<readonly ClusterSettings[]> = fc.oneof(
  fc.tuple(clusterArbitrary('c')),
  fc.tuple(clusterArbitrary('c'), clusterArbitrary('d')),
);

const acts: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 1,
    arbitrary: configurations.map((clusters) => ({ kind: 'configure' as const, clusters })),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('answer' as const),
      pick: fc.nat(9),
      answer: fc.constantFrom<ProbeAnswer>('ok', 'refused', 'refused', 'failed', 'not-tried'),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('wait' as const),
      seconds: fc.integer({ min: 1, max: 400 }).map((n) => n / 100),
    }),
  },
  { weight: 4, arbitrary: fc.constant({ kind: 'client' as const }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('refused' as const),
      flow: fc.nat(30),
      count: fc.integer({ min: 1, max: 3 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('heard' as const), flow: fc.nat(30) }),
  },
);

const walks = fc.array(acts, { maxLength: 120, size: 'max' });

test('laws: health is hysteresis over what probes met, both planes agree, new flows obey, and ejection spares enough', () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(configurations, walks, (first, walk) => {
      const world = new World(first);
      for (const act of walk) {
        world.perform(act);
        world.check();
      }
      for (const { kind } of world.bench.events) seen.add(kind);
    }),
    { numRuns: 200 },
  );
  expect([...seen.keys()].sort(), 'everything happened sometimes').toEqual([
    'Availability',
    'BackendEjected',
    'BackendReturned',
    'ClusterRecovered',
    'HealthChanged',
    'NoAvailableBackends',
  ]);
});

test('law: recovery is always possible, and so is an outage', () => {
  fc.assert(
    fc.property(
      configurations,
      walks,
      fc.constantFrom<ProbeAnswer>('ok', 'refused'),
      (first, walk, answer) => {
        const world = new World(first);
        for (const act of walk) world.perform(act);
        world.steady(answer);
        for (const { cluster, backends, health } of world.clusters) {
          const expected = answer === 'ok' || health === undefined ? 'up' : 'down';
          for (const { address } of backends) {
            expect(world.bench.healthOf(address, cluster)).toBe(expected);
          }
        }
      },
    ),
    { numRuns: 60 },
  );
});

test('law: a stop cancels everything, whenever it comes', () => {
  fc.assert(
    fc.property(configurations, walks, fc.boolean(), (first, walk, soft) => {
      const world = new World(first);
      const { bench } = world;
      for (const act of walk) world.perform(act);
      if (soft) bench.controlPump.drain();
      bench.controlPump.stop();
      expect(bench.flying.size).toBe(0);
      expect(bench.control.probesInFlight).toBe(0);
      expect(bench.wake).toBeUndefined();
    }),
    { numRuns: 60 },
  );
});

test('law: outages and recoveries are told by turns, each when it is true', () => {
  fc.assert(
    fc.property(configurations, walks, (first, walk) => {
      const world = new World(first);
      for (const act of walk) world.perform(act);
      // Only `c`: `d` may leave in between, and nothing is told of that.
      const told = world.bench.events.filter(({ cluster }) => cluster === 'c');
      let isOut = false;
      for (const [at, event] of told.entries()) {
        if (event.kind === 'NoAvailableBackends') {
          expect(isOut).toBe(false);
          expect(told[at - 1]).toMatchObject({ kind: 'Availability', available: 0 });
          isOut = true;
        } else if (event.kind === 'ClusterRecovered') {
          expect(isOut).toBe(true);
          isOut = false;
        }
      }
    }),
    { numRuns: 100 },
  );
});

interface Flight {
  readonly key: string;
  readonly startedAt: Instant;
  readonly settings: HealthSettings;
}

/** Both planes, and an account that knows nothing of plans or queues. Timers are never late, so nothing ends unseen. */
class World {
  readonly bench = new ControlBench(4);
  clusters: readonly ClusterSettings[] = [];
  private readonly flights = new Map<number, Flight>();
  private readonly health = new Map<string, HealthState>();
  private readonly ejected = new Set<string>();
  private seen = 0;
  private told = 0;

  constructor(first: readonly ClusterSettings[]) {
    this.configure(first);
    this.hear();
  }

  perform(act: Act): void {
    switch (act.kind) {
      case 'configure':
        this.configure(act.clusters);
        break;
      case 'answer': {
        const probes = [...this.bench.flying.keys()];
        const probe = probes[act.pick % probes.length];
        if (probe === undefined) break;
        this.learn(probe, act.answer);
        this.bench.answer(probe, act.answer);
        break;
      }
      case 'wait':
        this.wait(act.seconds);
        break;
      case 'refused':
      case 'heard':
        this.traffic(act);
        break;
      case 'client':
        this.checkClient();
    }
    this.hear();
  }

  check(): void {
    for (const { cluster, backends } of this.clusters) {
      let [available, up] = [0, 0];
      for (const { address } of backends) {
        const expected = this.healthOf(cluster, formatAddress(address));
        expect(this.bench.healthOf(address, cluster)).toBe(expected);
        const isEjected = this.ejected.has(`${cluster} ${formatAddress(address)}`);
        if (expected === 'up') up += 1;
        if (expected === 'up' && !isEjected) available += 1;
      }
      if (up > 0) expect(available, 'the last one is never ejected').toBeGreaterThan(0);
      const total = backends.length;
      expect(this.bench.availability(cluster)).toEqual({ available, total });
      expect(this.bench.control.countersOf(cluster)).toMatchObject({
        availableBackends: available,
        totalBackends: total,
      });
    }
    expect(this.bench.control.probesInFlight).toBe(this.bench.flying.size);
  }

  /** Every probe meets this answer, until nothing changes any more. */
  steady(answer: ProbeAnswer): void {
    for (let round = 0; round < 300; round += 1) {
      for (const probe of this.bench.flying.keys()) this.bench.answer(probe, answer);
      if (this.bench.wake === undefined) return;
      this.bench.runUntil(this.bench.wake / 1_000_000);
    }
  }

  private configure(clusters: readonly ClusterSettings[]): void {
    this.clusters = clusters;
    this.bench.configure(configOf(clusters, [listenerConfig({ maxFlows: 1_000 })]));
    const watched = new Set(
      clusters.flatMap(({ cluster, backends, health }) =>
        health === undefined
          ? []
          : backends.map(({ address }) => `${cluster} ${formatAddress(address)}`),
      ),
    );
    for (const key of this.health.keys()) if (!watched.has(key)) this.health.delete(key);
    this.hearEjections();
    const listened = new Set(
      clusters.flatMap(({ cluster, backends, passive }) =>
        passive === false
          ? []
          : backends.map(({ address }) => `${cluster} ${formatAddress(address)}`),
      ),
    );
    for (const key of this.ejected) if (!listened.has(key)) this.ejected.delete(key);
  }

  private traffic(act: Extract<Act, { flow: number }>): void {
    const { bench } = this;
    const { opened } = bench.ports;
    const flow = opened[act.flow % opened.length];
    if (flow === undefined) return;
    const refusals = act.kind === 'refused' ? act.count : 0;
    for (const one of bench.neighbours(flow)) {
      for (let n = 0; n < refusals; n += 1) bench.pump.refused(one);
    }
    if (act.kind === 'heard') bench.pump.backendDatagram(flow, Uint8Array.of(1));
    bench.pump.endTurn();
  }

  private hearEjections(): void {
    for (; this.told < this.bench.events.length; this.told += 1) {
      const event = this.bench.events[this.told]!;
      if (event.kind !== 'BackendEjected' && event.kind !== 'BackendReturned') continue;
      const key = `${event.cluster} ${formatAddress(event.address)}`;
      const isNews = event.kind === 'BackendEjected';
      expect(this.ejected.has(key), 'ejected and returned by turns').toBe(!isNews);
      if (!isNews) {
        this.ejected.delete(key);
        continue;
      }
      this.ejected.add(key);
      const { backends } = this.clusters.find(({ cluster }) => cluster === event.cluster)!;
      const ejected = backends.filter(({ address }) =>
        this.ejected.has(`${event.cluster} ${formatAddress(address)}`),
      );
      expect(ejected.length, 'never more than half').toBeLessThanOrEqual(backends.length / 2);
    }
  }

  private wait(time: number): void {
    const end = this.bench.ports.clock + Math.round(time * 1_000_000);
    while (this.bench.wake !== undefined && this.bench.wake <= end) {
      this.bench.runUntil(this.bench.wake / 1_000_000);
      this.hear();
    }
    this.bench.runUntil(end / 1_000_000);
  }

  /** Notes what was started, and what ran out of time: the rest of what is gone was cancelled, and says nothing. */
  private hear(): void {
    this.hearEjections();
    for (const [probe, flight] of this.flights) {
      if (this.bench.flying.has(probe)) continue;
      this.flights.delete(probe);
      const late = until(flight.startedAt, this.bench.ports.clock) >= flight.settings.probeTimeout;
      if (late) this.conclude(flight, missing(flight.settings));
    }
    for (; this.seen < this.bench.probes.length; this.seen += 1) {
      const probe = this.bench.probes[this.seen]!;
      if (this.bench.flying.has(probe.probe)) this.flights.set(probe.probe, this.flightOf(probe));
    }
  }

  private flightOf({ cluster, target }: Probe): Flight {
    const { health } = this.clusters.find((one) => one.cluster === cluster)!;
    const key = `${cluster} ${formatAddress(target)}`;
    return { key, startedAt: this.bench.ports.clock, settings: health! };
  }

  private learn(probe: number, answer: ProbeAnswer): void {
    const flight = this.flights.get(probe)!;
    this.flights.delete(probe);
    if (answer !== 'not-tried') this.conclude(flight, answer === 'ok' ? 'up' : 'down');
  }

  private conclude({ key, settings }: Flight, result: 'up' | 'down' | 'unknown'): void {
    const before = this.health.get(key) ?? INITIAL_HEALTH;
    this.health.set(key, judge(before, result, settings).state);
  }

  private healthOf(cluster: string, address: string): string {
    return this.health.get(`${cluster} ${address}`)?.health ?? 'up';
  }

  private checkClient(): void {
    const place = this.bench.askAnew();
    const { backends, health } = this.clusters[0]!;
    const all = backends.map(({ address }) => formatAddress(address));
    const up = all.filter(
      (address) => this.healthOf('c', address) === 'up' && !this.ejected.has(`c ${address}`),
    );
    if (up.length > 0) expect(up).toContain(place);
    else if (health?.failOpen === false) expect(place).toBeUndefined();
    else expect(all).toContain(place);
  }
}

function missing({ mode, expectReply }: HealthSettings): 'down' | 'unknown' {
  return mode === 'UDP_PROBE' && !expectReply ? 'unknown' : 'down';
}
