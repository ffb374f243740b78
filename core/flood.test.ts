/**
 * 200,000 sources at 10,000 datagrams/s for 20 s of virtual time, beside 50 flows of 20 datagrams/s that were there before
 * and 50 clients that open a flow for each query: who is still served, and what grew. Limits are on.
 */
import { expect, test } from 'vitest';
import { EchoPorts } from '../test/echo-ports.ts';
import { heldBy } from '../test/held.ts';
import { backendsOf, clusterSettings, configOf, listenerConfig } from '../test/plane-bench.ts';
import { ipv4, type Address } from './address.ts';
import { present } from './assert.ts';
import { listenerId } from './brand.ts';
import { NO_SOURCE_RATES } from './config.ts';
import { DataPlane } from './data-plane.ts';
import { initialDirectives } from './directives.ts';
import { PLACEMENT_SEED } from './hash.ts';
import { droppedDatagrams, unaccountedDatagrams, type ListenerCounters } from './metrics.ts';
import type { Pump } from './pump.ts';
import { instant, milliseconds, seconds, type Duration } from './time.ts';

const SOURCES = 200_000;
const SECONDS = 20;
const TURN = 1_000;
const TURNS = SECONDS * TURN;
const SPOOFED_PER_TURN = SOURCES / TURNS;
/** Clients of each kind, of which one speaks in each turn, or in each second turn. */
const CLIENTS = 50;
const QUERY_EVERY = 2;
const [GOOD, QUERIES, SPOOFED] = [0x0a010000, 0x0a020000, 0x0b000000];
const MAX_FLOWS = 10_000;
const PAYLOAD = new Uint8Array(64);
const LISTENER = listenerId(0);

interface Scenario {
  readonly columns: number;
  readonly idle: Duration;
}

interface Outcome {
  /** Of what clients with a flow sent and were answered, and of what clients without one did. */
  readonly good: number;
  readonly queries: number;
  readonly flows: number;
  readonly counters: Readonly<ListenerCounters>;
  readonly heldBefore: ReturnType<typeof heldBy>;
  readonly heldAfter: ReturnType<typeof heldBy>;
}

test('a flood that takes every free slot: established flows lose nothing, who needs a slot gets none', () => {
  const { good, queries, flows, counters } = flood('every slot taken', {
    columns: 16_384,
    idle: seconds(30),
  });
  expect(good).toBeGreaterThanOrEqual(0.999);
  expect(flows).toBe(MAX_FLOWS);
  expect(counters.droppedShed).toBeGreaterThan(SOURCES / 2);
  expect(queries).toBeLessThan(0.2);
});

test('a flood whose flows end before the slots do: clients that open a flow per query lose nothing either', () => {
  const { good, queries, counters } = flood('short idle time', {
    columns: 16_384,
    idle: milliseconds(500),
  });
  expect(good).toBeGreaterThanOrEqual(0.999);
  expect(queries).toBeGreaterThanOrEqual(0.999);
  expect(droppedDatagrams(counters)).toBe(0);
});

test('a flood that fills sketches far too narrow for it: established flows bypass them, new ones suffer', () => {
  const { good, queries, counters } = flood('narrow sketches', {
    columns: 64,
    idle: milliseconds(500),
  });
  expect(good).toBeGreaterThanOrEqual(0.999);
  expect(counters.droppedNewFlowRate).toBeGreaterThan(SOURCES / 4);
  expect(queries).toBeLessThan(0.9);
});

/** Plays it, prints what it came to, and expects what holds in every scenario: memory as before, every datagram accounted. */
function flood(name: string, scenario: Scenario): Outcome {
  const outcome = play(scenario);
  const { good, queries, flows, counters, heldBefore, heldAfter } = outcome;
  const { droppedShed, droppedNewFlowRate, droppedDatagramRate } = counters;
  process.stdout.write(
    `flood in virtual time, ${name}: good ${percent(good)}, a flow per query ${percent(queries)}, ${flows} flows at the end, ` +
      `dropped ${JSON.stringify({ droppedShed, droppedNewFlowRate, droppedDatagramRate })}, ` +
      `${heldBefore.bytes} bytes before and ${heldAfter.bytes} after\n`,
  );
  expect(unaccountedDatagrams(counters)).toBe(0);
  expect(heldAfter.bytes).toBe(heldBefore.bytes);
  // A queue that was never so long before.
  expect(heldAfter.entries - heldBefore.entries).toBeLessThan(100);
  return outcome;
}

function play(scenario: Scenario): Outcome {
  const answered = new Map<number, number>();
  const plane = planeOf();
  const ports = new EchoPorts(plane, ({ a }) =>
    answered.set(a >>> 16, (answered.get(a >>> 16) ?? 0) + 1),
  );
  ports.turnAt(instant(0), (pump) => {
    for (const directive of initialDirectives(configFor(scenario))) {
      pump.direct({ generation: 1, directive });
    }
  });
  // The good ones are there first.
  ports.turnAt(instant(0), (pump) => {
    for (let client = 0; client < CLIENTS; client += 1) send(pump, ipv4(GOOD + client, 1_000));
  });
  const heldBefore = heldBy(plane);
  for (let turn = 1; turn <= TURNS; turn += 1) {
    ports.turnAt(instant(turn * (1_000_000 / TURN)), (pump) => arrivals(pump, turn));
  }
  const of = (kind: number): number => answered.get(kind >>> 16) ?? 0;
  return {
    good: of(GOOD) / (CLIENTS + TURNS),
    queries: of(QUERIES) / (TURNS / QUERY_EVERY),
    flows: plane.flowCount,
    counters: present(plane.countersOf(LISTENER), 'the listener is there'),
    heldBefore,
    heldAfter: heldBy(plane),
  };
}

/** One millisecond: ten new sources, with one of the good in their midst, and every other time a query. */
function arrivals(pump: Pump, turn: number): void {
  for (let one = 0; one < SPOOFED_PER_TURN; one += 1) {
    // An odd factor visits every address of 11.0.0.0/8 once, far from its predecessor.
    const host = Math.imul((turn - 1) * SPOOFED_PER_TURN + one, 0x9e3779b1) & 0xffffff;
    send(pump, ipv4(SPOOFED + host, 1_024 + (turn % 60_000)));
    if (one === SPOOFED_PER_TURN / 2) send(pump, ipv4(GOOD + (turn % CLIENTS), 1_000));
  }
  if (turn % QUERY_EVERY !== 0) return;
  const query = turn / QUERY_EVERY;
  // A source port of its own for each.
  send(pump, ipv4(QUERIES + (query % CLIENTS), 1_024 + query));
}

function send(pump: Pump, src: Address): void {
  pump.clientDatagram(LISTENER, src, undefined, PAYLOAD);
}

function planeOf(): DataPlane {
  return new DataPlane({
    placementSeed: PLACEMENT_SEED,
    tableSeed: { first: 1, second: 2 },
    randomSeed: { high: 3, low: 4 },
  });
}

/** A query client opens ten flows a second: its rate is twice that. */
function configFor({ columns, idle }: Scenario): ReturnType<typeof configOf> {
  const rates = {
    ...NO_SOURCE_RATES,
    newFlowsPerSecond: 20,
    newFlowsBurst: 40,
    datagramsPerSecond: 100,
    datagramsBurst: 200,
    columns,
  };
  const settings = clusterSettings({
    backends: backendsOf(1, 2, 3),
    rates,
    maxFlowsPerIp: 500,
    amplification: { factor: 3, floor: 1_232 },
  });
  const listener = listenerConfig({ maxFlows: MAX_FLOWS, frontTimeout: idle, backTimeout: idle });
  return configOf([settings], [listener]);
}

function percent(share: number): string {
  return `${(100 * share).toFixed(3)} %`;
}
