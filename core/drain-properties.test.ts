/** Operators, clients and time in any order, through both planes: what is given up gets nothing new, then nothing at all. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ControlBench } from '../test/control-bench.ts';
import {
  addressOf,
  backendsOf,
  clusterSettings,
  configOf,
  listenerConfig,
} from '../test/plane-bench.ts';
import { untilOver } from '../test/until-over.ts';
import { formatAddress } from './address.ts';
import type { BackendCommand } from './backend-commands.ts';
import type { OperatorState } from './balancing/candidates.ts';
import { listenerId } from './brand.ts';
import type { Command } from './commands.ts';
import type { ClusterSettings, OnBackendLoss } from './config.ts';
import { instant, milliseconds, seconds, type Duration } from './time.ts';

const ONE = '10.0.0.1:53';
const TWO = '10.0.0.2:53';
const POLICIES: readonly OnBackendLoss[] = ['pin', 'rebind', 'close'];

describe('a client that never pauses', () => {
  for (const onBackendRemoved of POLICIES) {
    test(`leaves a draining backend at its deadline and not before (${onBackendRemoved})`, () => {
      const world = new World({ onBackendRemoved });
      world.send(1);
      drain(world, milliseconds(300));
      const places: unknown[] = [];
      for (let n = 0; n < 20; n += 1) {
        world.pass(0.02);
        places.push(world.send(1));
      }
      // The deadline falls on the fifteenth.
      expect(places).toEqual([...Array<string>(14).fill(ONE), ...Array<string>(6).fill(TWO)]);
      expect(world.bench.events).toContainEqual({
        kind: 'BackendDrained',
        cluster: 'c',
        address: addressOf(ONE),
        flowsLeft: 1,
        reason: 'deadline',
      });
    });
  }

  test('is dropped while its cluster has no backend, and served by the next that comes', () => {
    const world = new World({ backends: backendsOf(1) });
    expect(world.send(1)).toBe(ONE);
    world.configure({ backends: [] });
    expect(world.send(1)).toBeUndefined();
    expect(world.bench.plane.countersOf(listenerId(0))).toMatchObject({ droppedNoBackend: 1 });
    world.configure({ backends: backendsOf(2) });
    expect(world.send(1)).toBe(TWO);
    expect(world.bench.plane.flowCount).toBe(1);
    expect(world.bench.plane.clusters.backendsOf('c')!.flowsAt(addressOf(ONE))).toBe(0);
  });

  test('loses nothing but its place when its backend is disabled', () => {
    const world = new World({});
    world.send(1);
    world.command({ kind: 'DisableBackend', cluster: 'c', address: addressOf(ONE) });
    expect(world.send(1)).toBe(TWO);
    world.command({ kind: 'UndrainBackend', cluster: 'c', address: addressOf(ONE) });
    expect(world.send(1), 'it stays where it is').toBe(TWO);
    expect(world.bench.plane.countersOf(listenerId(0))).toMatchObject({
      flowsCreated: 1,
      flowsRebound: 1,
      flowsEvicted: 0,
    });
  });
});

test('a drain without a deadline ends with its last flow, told once', () => {
  const world = new World({});
  world.send(1);
  drain(world, undefined);
  expect(world.bench.kinds()).toEqual(['BackendDraining']);
  world.pass(29);
  expect(world.send(1)).toBe(ONE);
  world.pass(31);
  expect(world.bench.kinds()).toEqual(['BackendDraining', 'BackendDrained']);
  expect(world.send(1)).toBe(TWO);
});

test('a draining backend is not available: the last active one is never ejected for its traffic', () => {
  const world = new World({ backends: backendsOf(1, 2) });
  drain(world, undefined);
  expect(world.bench.events.at(-1)).toMatchObject({ kind: 'BackendDrained' });
  expect(world.bench.availability()).toEqual({ available: 1, total: 2 });
  for (let n = 1; n < 5; n += 1) world.send(n);
  for (const flow of world.bench.ports.open) {
    for (let n = 0; n < 3; n += 1) {
      world.bench.pump.refused(flow);
      world.bench.pump.endTurn();
    }
  }
  expect(world.bench.kinds()).not.toContain('BackendEjected');
  world.command({ kind: 'UndrainBackend', cluster: 'c', address: addressOf(ONE) });
  expect(world.bench.availability()).toEqual({ available: 2, total: 2 });
});

test('a new configuration keeps operators’ states, and Status tells them', () => {
  const world = new World({});
  drain(world, seconds(60));
  world.send(1);
  const directed = world.bench.directives.length;
  world.configure({ backends: backendsOf(3, 2, 1) });
  const repeated = world.bench.directives.slice(directed).map(({ directive }) => directive);
  expect(repeated, 'a data plane need not remember').toContainEqual(
    expect.objectContaining({ kind: 'SetBackendState', address: addressOf(ONE), state: 'drained' }),
  );
  const states = world.bench.status().clusters[0]!.backends.map(({ state }) => state);
  expect(states).toEqual(['active', 'active', 'drained']);
  for (let n = 2; n < 9; n += 1) expect(world.send(n)).not.toBe(ONE);
});

test('laws: nothing new for what is not active, nothing at all for what is given up, the last is spared, ends are told once', () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(
      fc.constantFrom(...POLICIES),
      fc.constantFrom('ROUND_ROBIN' as const, 'HRW' as const),
      fc.array(acts, { maxLength: 60, size: 'max' }),
      (onBackendRemoved, loadBalancing, walk) => {
        const settings = { onBackendRemoved, loadBalancing, backends: backendsOf(1, 2, 3) };
        const world = new World(settings);
        for (const act of walk) {
          act(world);
          world.check();
        }
        for (const { kind } of world.bench.events) seen.add(kind);
        for (const kind of world.refusals) seen.add(kind);
      },
    ),
    { numRuns: 200 },
  );
  expect(seen).toContain('BackendDrained');
  expect(seen).toContain('BackendDraining');
  expect(seen).toContain('LastBackend');
});

const commands: fc.Arbitrary<BackendCommand> = fc
  .record({
    kind: fc.constantFrom('DrainBackend', 'DrainBackend', 'UndrainBackend', 'DisableBackend'),
    n: fc.integer({ min: 1, max: 3 }),
    deadline: fc.option(fc.integer({ min: 0, max: 3 }).map(seconds), { nil: undefined }),
    force: fc.integer({ min: 0, max: 4 }).map((n) => n === 0),
  })
  .map(({ n, ...more }) => ({ cluster: 'c', address: addressOf(`10.0.0.${n}:53`), ...more }));

const acts = fc.oneof(
  { weight: 3, arbitrary: commands.map((command) => (world: World) => world.command(command)) },
  {
    weight: 6,
    arbitrary: fc.integer({ min: 1, max: 6 }).map(
      (n) =>
        (world: World): void =>
          world.tries(n),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(0, 0.05, 1, 31).map((n) => (world: World) => world.pass(n)),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.subarray([1, 2, 3], { minLength: 1 }), fc.constantFrom(50, 100))
      .map(([list, weight]) => {
        const backends = backendsOf(...list).map((backend) => ({ ...backend, weight }));
        return (world: World): void => world.configure({ backends });
      }),
  },
);

/** One cluster, its clients, and what operators said of its backends in a plain map. */
class World {
  readonly bench = new ControlBench();
  readonly refusals: string[] = [];
  private settings: ClusterSettings;
  private readonly states = new Map<string, OperatorState>();
  /** Where each upstream socket leads, by its name in the notes of the ports. */
  private readonly leads = new Map<string, string>();
  private told = 0;

  constructor(more: Partial<ClusterSettings>) {
    this.settings = clusterSettings(more);
    this.configure({});
  }

  configure(more: Partial<ClusterSettings>): void {
    this.settings = { ...this.settings, ...more };
    this.bench.configure(configOf([this.settings], [listenerConfig({ maxFlows: 1_000 })]));
    for (const name of this.states.keys())
      if (!this.names().includes(name)) this.states.delete(name);
    this.hear();
  }

  command(command: BackendCommand & Command): void {
    const name = formatAddress(command.address);
    const active = this.active();
    const reply = this.bench.command(command);
    if (!reply.ok) {
      this.refusals.push(reply.error.kind);
      if (reply.error.kind === 'NotFound') expect(this.names()).not.toContain(name);
      else expect(active).toEqual([name]);
      return;
    }
    if (reply.changed) this.states.set(name, WANTED[command.kind]);
    this.hear();
    const isForced = command.kind !== 'UndrainBackend' && command.force === true;
    if (active.length > 0 && !isForced) expect(this.active().length).toBeGreaterThan(0);
  }

  /** Where this client's datagram goes; undefined when it is dropped. */
  send(client: number): string | undefined {
    const { ports, pump } = this.bench;
    ports.calls = [];
    const from = addressOf(`10.1.0.1:${client}`);
    pump.clientDatagram(listenerId(0), from, undefined, Uint8Array.of(1));
    pump.endTurn();
    for (const call of ports.calls) {
      const [word, socket, place] = call.split(' ');
      if (word === 'open') this.leads.set(socket!, place!);
    }
    const sent = ports.calls.find((call) => call.startsWith('send'))?.split(' ')[1];
    return sent === undefined ? undefined : this.leads.get(sent);
  }

  /** Sends, and holds the planes to what they promise. */
  tries(client: number): void {
    const place = this.send(client);
    const isNew = this.bench.ports.calls.some((call) => call.startsWith('open'));
    if (place === undefined) expect(this.active(), 'nobody else would serve').toEqual([]);
    else if (isNew) expect(this.active()).toContain(place);
    else if (this.settings.onBackendRemoved === 'pin')
      expect(this.stateOf(place)).not.toBe('drained');
    else {
      expect(this.names()).toContain(place);
      expect(['active', 'draining']).toContain(this.stateOf(place));
    }
  }

  /** Lets time go by, with both timers. */
  pass(time: number): void {
    const { bench } = this;
    const end = bench.ports.clock + seconds(1) * time;
    untilOver(() => {
      const next = Math.min(bench.wake ?? Infinity, bench.ports.wake ?? Infinity);
      if (next > end) return false;
      bench.ports.clock = instant(Math.max(next, bench.ports.clock));
      if (next === bench.wake) bench.fire();
      else this.fire();
      return true;
    });
    bench.ports.clock = instant(end);
    this.hear();
  }

  check(): void {
    const known = this.bench.status().clusters[0]!.backends;
    for (const { backend, state } of known) {
      expect(state).toBe(this.stateOf(formatAddress(backend.address)));
    }
    const total = known.length;
    expect(this.bench.availability()).toEqual({ available: this.active().length, total });
  }

  private fire(): void {
    this.bench.ports.wake = undefined;
    this.bench.pump.timer();
    this.bench.pump.endTurn();
  }

  /** A drain that is over was under way, and is told once. */
  private hear(): void {
    for (; this.told < this.bench.events.length; this.told += 1) {
      const event = this.bench.events[this.told]!;
      if (event.kind === 'BackendDraining') {
        expect(this.stateOf(formatAddress(event.address))).toBe('draining');
      }
      if (event.kind !== 'BackendDrained') continue;
      const name = formatAddress(event.address);
      expect(this.stateOf(name)).toBe('draining');
      this.states.set(name, 'drained');
    }
  }

  private names(): string[] {
    return this.settings.backends.map(({ address }) => formatAddress(address));
  }

  private stateOf(name: string): OperatorState {
    return this.states.get(name) ?? 'active';
  }

  private active(): string[] {
    return this.names().filter((name) => this.stateOf(name) === 'active');
  }
}

const WANTED: Readonly<Record<BackendCommand['kind'], OperatorState>> = {
  DrainBackend: 'draining',
  UndrainBackend: 'active',
  DisableBackend: 'disabled',
};

function drain(world: World, deadline: Duration | undefined): void {
  world.command({ kind: 'DrainBackend', cluster: 'c', address: addressOf(ONE), deadline });
}
