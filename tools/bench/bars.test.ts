import { expect, test } from 'vitest';
import { BURSTS, LARGE_DATAGRAMS, loadName, MANY_FLOWS, SMALL_LOADS, type Load } from './loads.ts';
import {
  balancingFigures,
  BARS,
  compareWithBars,
  flowListFigures,
  inCoreFigures,
  latencyFigures,
  memoryFigures,
  millionFigures,
  simulatedSoakFigures,
  soakFigures,
  workersFigures,
  pairedFigures,
} from './bars.ts';

const spread = { lower: 1, median: 1, upper: 1 };

function cost(flows: number, active: number, median: number) {
  const client = { ...spread, median };
  return { flows, active, client, backend: spread, clientBytes: 0, backendBytes: 0 };
}

const core = inCoreFigures({
  managerBytesPerFlow: 300,
  tableBytesPerFlow: 85,
  forwarding: [cost(100, 100, 90), cost(100_000, 100_000, 250), cost(100_000, 100, 95)],
  inserts: [
    { name: 'flow table', longest: [4_000, 200, 900], tail: [20, 20, 20], longestRepeatable: 9 },
    { name: 'admission', longest: [5_000, 3_000, 1_500], tail: [40, 40, 40], longestRepeatable: 9 },
  ],
});

/** The first is what the others are compared with. */
const CONTENDERS: Readonly<Record<string, readonly string[]>> = {
  dgram: ['yardstick', 'sozu-udp dgram'],
  mmsg: ['floor-gso', 'floor-gso gro', 'nginx', 'sozu-udp mmsg'],
  dns: ['nginx', 'dnsdist', 'mmsg, responses = 1', 'mmsg, responses = 0'],
  cost: ['earlier', 'sozu-udp dgram', 'with limits'],
  recorder: ['recorder off', 'recorder on'],
};

function workers(shares: number[]) {
  const nothing = { name: 'x', sliceMs: 500, series: [] };
  return { sustained: nothing, rate: 1, atRate: nothing, shares };
}

const SOAK = {
  minutes: 1,
  rate: 1,
  samples: [],
  flowsCreated: 1,
  memoryEarly: 100,
  memoryLate: 103,
  unevenSamples: 0,
  sent: 10,
  answered: 8,
  droppedByProxy: 1,
  droppedByKernel: 2,
  unexplained: -1,
};

const MILLION = {
  flows: 1_000_000,
  flowsPerTurn: 256,
  runs: 3,
  longestAdmission: 4,
  longestExpiry: 6,
  allAtOnce: 900,
};

function pairedRun(load: Load | string, part: string) {
  const measured = { nanoseconds: [1], tripsPerSecond: 1, trips: 1, lost: 0, ratio: 1 };
  const rest = { pairedRatio: spread, loadNanoseconds: 1, backendNanoseconds: 1 };
  const names = CONTENDERS[part] ?? [];
  const name = typeof load === 'string' ? load : loadName(load);
  const series = names.map((own, at) => {
    return { name: own, ...measured, ...rest, spread: { ...spread, median: 2 ** at } };
  });
  return pairedFigures({ name, sliceMs: 500, series }, part);
}

function latency(nginx: number, own: number) {
  const way = (name: string, time: number) => {
    const all = { ...spread, median: time };
    const added = { p50: time, p99: time, p999: time };
    return { name, p50: all, p99: all, p999: all, added, sent: 1, lost: 0 };
  };
  const ways = [way('direct', 10), way('nginx', nginx), way('sozu-udp mmsg', own)];
  return { rate: 1, flows: 1, sliceMs: 500, ways };
}

test('every bar has a figure that the bench measures, so no misspelt name goes unchecked', () => {
  const loads = [...SMALL_LOADS, MANY_FLOWS, LARGE_DATAGRAMS, BURSTS];
  const paired = Object.keys(CONTENDERS).flatMap((part) =>
    loads.flatMap((load) => pairedRun(load, part)),
  );
  const list = { flows: 1, list: spread, bytes: 1, part: spread, parts: 1 };
  const figures = [
    ...paired,
    ...pairedRun('1000 source ports', 'dns'),
    ...latencyFigures(latency(30, 20)),
    ...memoryFigures({ flows: 1, heapPerFlow: 1, tablePerFlow: 1 }),
    ...millionFigures(MILLION),
    ...workersFigures(workers([0.45, 0.55])),
    ...soakFigures(SOAK),
    ...simulatedSoakFigures({ minutes: 1, sent: 1, heard: 1, flows: 1, memory: [1, 1] }),
    ...core,
    ...balancingFigures({ builds: [], selections: [] }),
    ...flowListFigures({ ...list, pauseListing: spread, pauseQuiet: spread }),
  ];
  expect(compareWithBars(figures, BARS).map(({ bar }) => bar)).toEqual(BARS);
});

test('a contender is compared with every one before it', () => {
  expect(pairedRun(BURSTS, 'cost')).toEqual([
    { name: 'cost, bursts of 64 x 1200 bytes, sozu-udp dgram over earlier', value: 2 },
    { name: 'cost, bursts of 64 x 1200 bytes, with limits over earlier', value: 4 },
    { name: 'cost, bursts of 64 x 1200 bytes, with limits over sozu-udp dgram', value: 2 },
  ]);
});

test('latency is compared with that of nginx, and less is less than nothing', () => {
  expect(latencyFigures(latency(30, 20)).map(({ value }) => value)).toEqual([-10, -10, -10]);
});

test('the longest pause is that of turns in which flows come and go as they do', () => {
  expect(millionFigures(MILLION)).toMatchObject([{ value: 6 }]);
});

test('the share of the busier worker says what is left for the other', () => {
  expect(workersFigures(workers([0.45, 0.55]))[1]?.value).toBe(0.55);
});

test('more drops than losses are as unexplained as fewer', () => {
  expect(soakFigures(SOAK).map(({ value }) => value)).toEqual([1.03, 0, 1]);
});

test('a figure equal to its bar meets it, one above misses it', () => {
  const bars = [{ figure: 'x', atMost: 2, unit: '' }];
  expect(compareWithBars([{ name: 'x', value: 2 }], bars)[0]?.met).toBe(true);
  expect(compareWithBars([{ name: 'x', value: 2.001 }], bars)[0]?.met).toBe(false);
});

test('a figure that is not a number misses its bar', () => {
  const bars = [{ figure: 'x', atMost: 2, unit: '' }];
  expect(compareWithBars([{ name: 'x', value: Number.NaN }], bars)[0]?.met).toBe(false);
});

test('a bar whose part was not run is not compared', () => {
  expect(compareWithBars(core, BARS)).toHaveLength(5);
});

test('in-core figures are differences to 100 flows, and the best run of the longest insert', () => {
  expect(core.map(({ value }) => value)).toEqual([160, 5, 85, 200, 1_500]);
});

test('the longest slice is that of the worst size', () => {
  const build = { backends: 1, atOnce: 9, slices: 3, change: 1, firstSelection: 1 };
  const builds = [1, 4, 2].map((longestSlice) => ({ ...build, longestSlice }));
  expect(balancingFigures({ builds, selections: [] })).toMatchObject([{ value: 4 }]);
});
