/**
 * One control plane with many data planes, whose mail arrives in any order that keeps that of each plane: in the end it is as
 * it would be with one plane that answers at once.
 */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyCommand, CLUSTERS, configs } from '../test/config-arbitraries.ts';
import { ControlBench } from '../test/control-bench.ts';
import { GroupBench } from '../test/group-bench.ts';
import { addressOf, backendsOf, clusterSettings, listenerConfig } from '../test/plane-bench.ts';
import { untilOver } from '../test/until-over.ts';
import { formatAddress } from './address.ts';
import { listenerId } from './brand.ts';
import type { Command } from './commands.ts';
import type { Config } from './config.ts';
import type { Report } from './directives.ts';
import type { Errno } from './ports.ts';
import { seconds } from './time.ts';
import { checkInvariants } from './verify.ts';

const planes = fc.integer({ min: 1, max: 4 });

/** Mail is delivered between two commands, and a datagram comes once its plane knows what was directed. */
type Step =
  | { readonly kind: 'command'; readonly command: Command }
  | { readonly kind: 'client'; readonly client: number; readonly listener: number }
  | { readonly kind: 'directive' | 'report'; readonly plane: number };

const places = fc.record({
  cluster: fc.constantFrom(...CLUSTERS),
  address: fc.constantFrom(1, 2, 3, 4).map((number) => addressOf(`10.0.0.${number}:53`)),
});

/** Where flows go depends on nothing that planes do not share. */
const placed = configs.map((config): Config => {
  const clusters = config.clusters.map((one) => ({ ...one, loadBalancing: 'HRW' as const }));
  return {
    ...config,
    clusters,
    listeners: config.listeners.map((one) => ({ ...one, maxFlows: 64 })),
  };
});

const commands: fc.Arbitrary<Command> = fc.oneof(
  { weight: 3, arbitrary: placed.map((config) => ({ kind: 'Reload' as const, config })) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.constantFrom('DrainBackend' as const, 'UndrainBackend' as const), places)
      .map(([kind, place]) => ({ kind, ...place })),
  },
  {
    weight: 2,
    arbitrary: anyCommand.filter(
      ({ kind }) => !['AddCluster', 'AddListener', 'UpdateListener'].includes(kind),
    ),
  },
);

const steps: fc.Arbitrary<Step> = fc.oneof(
  { weight: 2, arbitrary: commands.map((command) => ({ kind: 'command' as const, command })) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('client' as const),
      client: fc.nat(7),
      listener: fc.nat(5),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constantFrom('directive' as const, 'report' as const),
      plane: fc.nat(3),
    }),
  },
);

describe('in the end', () => {
  test('listeners, backends, flows and drains are as with one plane', () => {
    fc.assert(
      fc.property(planes, placed, plan(30), (count, config, played) => {
        const pair = new Pair(count, config);
        for (const step of played) pair.play(step);
        pair.settle();
        expect(pair.group.status()).toEqual(pair.single.status());
        expect(pair.group.flowCount).toBe(pair.single.plane.flowCount);
        expect(openOf(pair.group.told)).toEqual(openOf(pair.single.reports));
        expectShared(pair);
      }),
      { numRuns: 150 },
    );
  });

  test('a stop closes what is left, and says so once and last', () => {
    const stops = fc.constantFrom<('SoftStop' | 'HardStop')[][]>(
      ['HardStop'],
      ['SoftStop'],
      ['SoftStop', 'SoftStop'],
      ['SoftStop', 'HardStop'],
    );
    fc.assert(
      fc.property(
        planes,
        placed,
        plan(15),
        stops,
        plan(15),
        (count, config, before, kinds, after) => {
          const pair = new Pair(count, config);
          for (const step of before) pair.play(step);
          pair.deliverDirectives();
          const left = pair.single.plane.flowCount;
          for (const kind of kinds) pair.play({ kind: 'command', command: { kind } });
          for (const step of after) if (step.kind !== 'client') pair.play(step);
          pair.settle();
          pair.pass(61);
          pair.settle();
          const stopped = pair.group.told.filter(({ kind }) => kind === 'Stopped');
          expect(stopped).toEqual(pair.single.reports.filter(({ kind }) => kind === 'Stopped'));
          expect(stopped).toHaveLength(1);
          if (kinds[0] === 'HardStop') expect(stopped).toMatchObject([{ flowsClosed: left }]);
          for (const { ports } of pair.group.members)
            expect([...ports.open, ...ports.listening]).toEqual([]);
        },
      ),
      { numRuns: 100 },
    );
  });

  test('one plane is heard and directed word for word', () => {
    fc.assert(
      fc.property(placed, plan(30), (config, played) => {
        const pair = new Pair(1, config);
        for (const step of played) pair.play(step);
        pair.settle();
        const { members, directed, told } = pair.group;
        const [{ received, made } = { received: [], made: [] }] = members;
        expect(received.map((one, nth) => one === directed[nth])).toEqual(directed.map(() => true));
        expect(told.map((one, nth) => one === made[nth])).toEqual(made.map(() => true));
      }),
      { numRuns: 100 },
    );
  });
});

describe('sockets that do not open', () => {
  const address = addressOf('10.0.1.1:53');
  const failures = fc.constantFrom<(Errno | undefined)[]>(
    undefined,
    'EADDRNOTAVAIL',
    'EADDRINUSE',
    'EACCES',
  );
  const turns = fc.array(
    fc.record({
      plane: fc.nat(3),
      what: fc.constantFrom(
        'directive' as const,
        'report' as const,
        'pass' as const,
        'fate' as const,
      ),
      fate: failures,
    }),
    { size: 'max', maxLength: 40 },
  );

  test('are told once for all, and their end once too', () => {
    fc.assert(
      fc.property(
        planes,
        fc.array(failures, { minLength: 4, maxLength: 4 }),
        fc.boolean(),
        turns,
        (count, first, retries, played) => {
          const bench = new GroupBench(count);
          for (const [nth, { ports }] of bench.members.entries()) ports.listenerResult = first[nth];
          const bindRetry = retries ? seconds(1) : undefined;
          bench.configure({
            listeners: [listenerConfig({ address, bindRetry })],
            clusters: [clusterSettings({ backends: backendsOf(1) })],
            grace: seconds(1),
          });
          for (const { plane, what, fate } of played) {
            if (what === 'directive') bench.deliverDirective(plane);
            else if (what === 'report') bench.deliverReport(plane);
            else if (what === 'pass') bench.pass(0.7);
            else bench.at(plane).ports.listenerResult = fate;
          }
          bench.settle();
          expectTurns(bench.told);
          const [listener] = bench.status().listeners;
          const isOpen = bench.members.every(({ ports }) => ports.listening.size === 1);
          const gone = bench.told.some(
            (one) => one.kind === 'ListenerFailed' && one.retry === undefined,
          );
          expect(listener?.active).toBe(!gone);
          expect(listener?.failure === undefined).toBe(isOpen);
          if (!gone) return;
          for (const { plane, ports } of bench.members) {
            expect(ports.listening.size).toBe(0);
            expect(plane.listeners.all).toEqual([]);
          }
          expect(bench.told.filter(({ kind }) => kind === 'ListenerClosed')).toHaveLength(1);
        },
      ),
      { numRuns: 150 },
    );
  });
});

/** The same told to one data plane at once and to several by mail. */
class Pair {
  readonly single = new ControlBench();
  readonly group: GroupBench;

  constructor(count: number, config: Config) {
    this.group = new GroupBench(count);
    this.single.configure(config);
    this.group.configure(config);
  }

  play(step: Step): void {
    if (step.kind === 'command') {
      this.single.command(step.command);
      this.group.command(step.command);
    } else if (step.kind === 'client') {
      this.group.deliverDirectives();
      this.group.send(step.client, step.listener);
      this.send(step.client, step.listener);
    } else if (step.kind === 'directive') this.group.deliverDirective(step.plane);
    else this.group.deliverReport(step.plane);
  }

  deliverDirectives(): void {
    this.group.deliverDirectives();
  }

  settle(): void {
    this.group.settle();
    // Drains say how many flows are left a few times a second.
    this.pass(0.2);
    this.group.settle();
  }

  pass(count: number): void {
    this.group.pass(count);
    const { ports, pump } = this.single;
    this.single.runUntil(this.group.at(0).ports.clock / 1_000_000);
    untilOver(() => {
      if (ports.wake === undefined || ports.wake > ports.clock) return false;
      ports.wake = undefined;
      pump.timer();
      pump.endTurn();
      return true;
    });
  }

  private send(client: number, listener: number): void {
    const { plane, pump } = this.single;
    if (plane.listeners.all.every(({ id }) => id !== listener)) return;
    const src = addressOf(`10.9.0.1:${1_000 + client}`);
    pump.clientDatagram(listenerId(listener), src, undefined, Uint8Array.of(1));
    pump.endTurn();
  }
}

function plan(maxLength: number): fc.Arbitrary<Step[]> {
  return fc.array(steps, { size: 'max', maxLength });
}

/** Each plane has the listeners and clusters of all, and its share of the flows. */
function expectShared({ group, single }: Pair): void {
  for (const wanted of single.plane.listeners.all) {
    const shares = group.members.map(({ plane }) => {
      const found = plane.listeners.at(wanted.id);
      expect({ ...found?.config, maxFlows: 0 }).toEqual({ ...wanted.config, maxFlows: 0 });
      return found?.config.maxFlows ?? Number.NaN;
    });
    expect(shares.reduce((sum, one) => sum + one, 0)).toBe(wanted.config.maxFlows);
  }
  for (const { plane } of group.members) {
    expect(plane.listeners.all).toHaveLength(single.plane.listeners.all.length);
    expect(plane.clusters.all.map(({ settings }) => settings)).toEqual(
      single.plane.clusters.all.map(({ settings }) => settings),
    );
    expect(plane.staleDirectives).toBe(0);
    for (const { manager } of plane.listeners.all) checkInvariants(manager);
  }
}

/** The addresses of listeners that are open, by what was told of them. */
function openOf(told: readonly Report[]): string[] {
  const open = new Set<string>();
  for (const report of told) {
    if (report.kind === 'ListenerOpened') open.add(formatAddress(report.address));
    if (report.kind === 'ListenerClosed') open.delete(formatAddress(report.address));
  }
  return [...open].toSorted();
}

/** Failure and success take turns, and after a failure that is final there is neither. */
function expectTurns(told: readonly Report[]): void {
  let last: string | undefined;
  for (const report of told) {
    if (report.kind === 'ListenerOpened') {
      expect(last).not.toBe('gone');
      last = 'open';
    } else if (report.kind === 'ListenerFailed') {
      expect(last).not.toBe('gone');
      if (report.retry !== undefined) expect(last).not.toBe('failing');
      last = report.retry === undefined ? 'gone' : 'failing';
    }
  }
}
