/** Any configurations, answers, doubts and wake-ups, in any order, against a naive account of what was heard. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatAddress, ipv4 } from '../address.ts';
import { createRandom } from '../random.ts';
import { instant, seconds, until, type Instant } from '../time.ts';
import { judge, INITIAL_HEALTH, type HealthState } from './hysteresis.ts';
import type { ProbeAnswer, ProbedCluster, ProbeId, ProbePlanOutput } from './probe-contract.ts';
import { ProbePlan } from './probe-plan.ts';
import { healthSettings } from './settings.ts';

const IN_FLIGHT_MAX = 3;
const BACKENDS = [1, 2, 3, 4].map((number) => ipv4(0x0a000000 + number, 53));
const PAYLOAD = Uint8Array.of(1);

type Act =
  | { readonly kind: 'configure'; readonly clusters: readonly ProbedCluster[] }
  | { readonly kind: 'answer'; readonly pick: number; readonly answer: ProbeAnswer }
  | { readonly kind: 'stray'; readonly probe: number }
  | { readonly kind: 'confirm'; readonly cluster: string; readonly backend: number }
  | { readonly kind: 'wait'; readonly time: number }
  | { readonly kind: 'wake' };

const clusterArbitrary = (cluster: string): fc.Arbitrary<ProbedCluster> =>
  fc.record({
    cluster: fc.constant(cluster),
    settings: fc
      .record({
        mode: fc.constantFrom('TCP_PROBE', 'UDP_PROBE', 'HEALTH_OFF'),
        expectReply: fc.boolean(),
        rise: fc.integer({ min: 1, max: 3 }),
        fall: fc.integer({ min: 1, max: 3 }),
        probeInterval: fc.integer({ min: 1, max: 8 }).map(seconds),
        probeTimeout: fc.integer({ min: 1, max: 8 }).map(seconds),
      })
      .map((given) => healthSettings({ ...given, udpProbePayload: PAYLOAD })),
    proxyProtocol: fc.boolean(),
    backends: fc.subarray(BACKENDS),
  });

const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('configure' as const),
      clusters: fc
        .tuple(clusterArbitrary('a'), clusterArbitrary('b'))
        .chain((both) => fc.subarray(both)),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('answer' as const),
      pick: fc.nat(9),
      answer: fc.constantFrom<ProbeAnswer>('ok', 'refused', 'failed', 'not-tried'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('stray' as const), probe: fc.nat(40) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('confirm' as const),
      cluster: fc.constantFrom('a', 'b'),
      backend: fc.nat(3),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('wait' as const),
      time: fc.nat(seconds(3)),
    }),
  },
  { weight: 6, arbitrary: fc.constant({ kind: 'wake' as const }) },
);

test('laws: bounds hold, every probe ends once, health is what the ended probes say, and the plan never sleeps too long', () => {
  fc.assert(
    fc.property(fc.nat(), fc.array(act, { maxLength: 120, size: 'max' }), (seed, acts) => {
      const world = new World(seed);
      for (const one of acts) {
        world.perform(one);
        world.check();
      }
    }),
    { numRuns: 150 },
  );
});

test('one seed and one list of inputs give one list of outputs', () => {
  fc.assert(
    fc.property(fc.nat(), fc.array(act, { maxLength: 60 }), (seed, acts) => {
      const [one, other] = [new World(seed), new World(seed)];
      for (const each of acts) {
        one.perform(each);
        other.perform(each);
      }
      expect(one.log).toEqual(other.log);
      expect(one.plan.nextWake()).toEqual(other.plan.nextWake());
    }),
    { numRuns: 30 },
  );
});

test('law: recovery is always possible, and so is an outage: left to a steady answer, every backend comes to agree with it', () => {
  fc.assert(
    fc.property(
      fc.nat(),
      fc.array(act, { maxLength: 60 }),
      fc.constantFrom<ProbeAnswer>('ok', 'refused'),
      (seed, acts, answer) => {
        const world = new World(seed);
        for (const one of acts) world.perform(one);
        // At most 8 targets, each with 3 results to go and what is in flight.
        for (let round = 0; round < 400; round += 1) {
          const [probe] = world.flying.keys();
          world.perform(
            probe === undefined ? { kind: 'wake' } : { kind: 'answer', pick: 0, answer },
          );
        }
        const expected = answer === 'ok' ? 'up' : 'down';
        for (const { cluster, settings, backends } of world.clusters) {
          if (settings === undefined || settings.mode === 'HEALTH_OFF') continue;
          for (const address of backends) {
            expect(world.plan.healthOf(cluster, address)).toBe(expected);
          }
        }
      },
    ),
    { numRuns: 60 },
  );
});

interface Flying {
  readonly key: string;
  readonly startedAt: Instant;
  readonly timeout: number;
  readonly rise: number;
  readonly fall: number;
}

/** The plan, and an account that knows nothing of heaps, slots or queues. */
class World {
  readonly plan: ProbePlan;
  readonly log: ProbePlanOutput[] = [];
  readonly flying = new Map<ProbeId, Flying>();
  clusters: readonly ProbedCluster[] = [];
  private readonly announced: string[] = [];
  private readonly cancelled = new Map<ProbeId, Flying>();
  private lastProbe = 0;
  private readonly health = new Map<string, HealthState>();
  private now: Instant = instant(0);

  constructor(seed: number) {
    this.plan = new ProbePlan(createRandom({ high: 0, low: seed }), IN_FLIGHT_MAX);
  }

  perform(one: Act): void {
    switch (one.kind) {
      case 'configure':
        this.clusters = one.clusters;
        this.plan.configure(one.clusters, this.now);
        break;
      case 'answer': {
        const probes = [...this.flying.keys()];
        const probe = probes[one.pick % probes.length] ?? 0;
        this.plan.probeAnswered(probe, one.answer, this.now);
        break;
      }
      case 'stray':
        this.plan.probeAnswered(this.flying.has(one.probe) ? 0 : one.probe, 'ok', this.now);
        break;
      case 'confirm':
        this.plan.confirm(one.cluster, BACKENDS[one.backend]!, this.now);
        break;
      case 'wait':
        this.now = instant(this.now + one.time);
        return;
      case 'wake':
        this.wake();
    }
    this.hear();
    if (one.kind === 'configure') this.forgetTheRest();
  }

  private wake(): void {
    const at = this.plan.nextWake()?.at ?? this.now;
    this.now = instant(Math.max(at, this.now));
    this.plan.handleTimeout(this.now);
  }

  check(): void {
    const targets = this.targets();
    expect(this.plan.targetCount).toBe(targets.size);
    expect(this.plan.inFlightCount).toBe(this.flying.size);
    expect(this.flying.size).toBeLessThanOrEqual(IN_FLIGHT_MAX);
    const probed = [...this.flying.values()].map(({ key }) => key);
    expect(new Set(probed).size, 'one probe at a time').toBe(probed.length);
    for (const key of probed) expect(targets.has(key)).toBe(true);
    for (const [key, { cluster, backend }] of targets) {
      const expected = this.health.get(key)?.health ?? 'up';
      expect(this.plan.healthOf(cluster, backend), key).toBe(expected);
    }
    if (this.plan.waitingCount > 0) expect(this.flying.size).toBe(IN_FLIGHT_MAX);
    this.checkWake(targets, probed);
  }

  private checkWake(targets: ReadonlyMap<string, Target>, probed: readonly string[]): void {
    const wake = this.plan.nextWake();
    expect(wake === undefined).toBe(targets.size === 0);
    const deadlines = [...this.flying.values()].map(
      ({ startedAt, timeout }) => startedAt + timeout,
    );
    expect(wake?.at ?? 0).toBeLessThanOrEqual(Math.min(...deadlines, Infinity));
    if (this.plan.waitingCount > 0) return;
    for (const [key, { interval }] of targets) {
      if (!probed.includes(key)) expect(wake?.at ?? 0).toBeLessThanOrEqual(this.now + interval);
    }
  }

  private hear(): void {
    for (let output = this.plan.pollOutput(); output !== undefined;) {
      this.log.push(output);
      this.take(output);
      output = this.plan.pollOutput();
    }
    expect(this.announced, 'every transition is told').toEqual([]);
    const wake = this.plan.nextWake();
    if (wake !== undefined) expect(wake.at, 'a wake-up is ahead').toBeGreaterThan(this.now);
  }

  private take(output: ProbePlanOutput): void {
    switch (output.kind) {
      case 'StartProbe': {
        expect(output.probe, 'ids count up').toBe(++this.lastProbe);
        const [key, found] = this.asked(output);
        const { timeout, rise, fall } = found;
        this.flying.set(output.probe, { key, startedAt: this.now, timeout, rise, fall });
        return;
      }
      case 'CancelProbe':
        expect(this.flying.has(output.probe), 'only what flies is cancelled').toBe(true);
        this.cancelled.set(output.probe, this.flying.get(output.probe)!);
        this.flying.delete(output.probe);
        return;
      case 'ProbeEnded': {
        const flight = this.flying.get(output.probe) ?? this.cancelled.get(output.probe)!;
        this.flying.delete(output.probe);
        expect(`${output.cluster} ${formatAddress(output.address)}`).toBe(flight.key);
        expect(output.startedAt).toBe(flight.startedAt);
        const late = until(flight.startedAt, this.now) >= flight.timeout;
        expect(output.outcome === 'timeout' || output.outcome === 'silence').toBe(late);
        if (output.result === undefined) return;
        const before = this.health.get(flight.key) ?? INITIAL_HEALTH;
        const { state, transition } = judge(before, output.result, flight);
        this.health.set(flight.key, state);
        if (transition !== undefined) this.announced.push(`${flight.key} ${transition.to}`);
        return;
      }
      case 'HealthChanged': {
        const key = `${output.cluster} ${formatAddress(output.address)}`;
        if (output.evidence.kind === 'unwatched') {
          expect(this.health.get(key)?.health).toBe('down');
          expect(this.targets().has(key)).toBe(false);
        } else {
          expect(this.announced.shift()).toBe(`${key} ${output.to}`);
        }
        return;
      }
    }
  }

  private asked(output: Extract<ProbePlanOutput, { kind: 'StartProbe' }>): [string, Target] {
    const key = `${output.cluster} ${formatAddress(output.target)}`;
    const target = this.targets().get(key);
    expect(target?.mode, 'only backends are probed').toBe(output.mode);
    return [key, target!];
  }

  private targets(): Map<string, Target> {
    const found = new Map<string, Target>();
    for (const { cluster, settings, backends } of this.clusters) {
      if (settings === undefined || settings.mode === 'HEALTH_OFF') continue;
      const { probeInterval: interval, probeTimeout: timeout, rise, fall } = settings;
      const mode = settings.mode === 'UDP_PROBE' ? 'udp' : 'tcp';
      for (const backend of backends) {
        const key = `${cluster} ${formatAddress(backend)}`;
        found.set(key, { cluster, backend, mode, interval, timeout, rise, fall });
      }
    }
    return found;
  }

  private forgetTheRest(): void {
    const targets = this.targets();
    for (const key of this.health.keys()) if (!targets.has(key)) this.health.delete(key);
  }
}

interface Target {
  readonly cluster: string;
  readonly backend: (typeof BACKENDS)[number];
  readonly mode: 'tcp' | 'udp';
  readonly interval: number;
  readonly timeout: number;
  readonly rise: number;
  readonly fall: number;
}
