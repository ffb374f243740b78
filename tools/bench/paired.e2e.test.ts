import { expect, test } from 'vitest';
import { CONTROL, YARDSTICK, type Contender } from './contenders.ts';
import { measurePaired, type PairedOptions } from './paired.ts';
import { placement } from './processes.ts';

const load = { flows: 4, window: 2, bytes: 64 };

/** Short on purpose: this asks whether the harness works, never how fast anything is. */
const TINY: PairedOptions = {
  slices: 2,
  sliceMs: 50,
  warmUpMs: 50,
  placement: placement(),
  progress: () => undefined,
};

test('the yardstick is measured against itself', async () => {
  const result = await measurePaired([YARDSTICK, CONTROL], load, TINY);
  expect(result).toMatchObject({ name: '4 x 2', sliceMs: 50 });
  expect(result.series.map(({ name }) => name)).toEqual(['yardstick', 'control']);
  for (const { nanoseconds, trips, tripsPerSecond, lost, ratio, ...rest } of result.series) {
    expect(nanoseconds).toHaveLength(2);
    for (const cost of nanoseconds) expect(cost).toBeGreaterThan(0);
    expect(trips).toBeGreaterThan(0);
    expect(tripsPerSecond).toBeGreaterThan(0);
    expect(lost).toBeGreaterThanOrEqual(0);
    expect(ratio).toBeGreaterThan(0);
    expect(rest.loadNanoseconds).toBeGreaterThan(0);
    expect(rest.backendNanoseconds).toBeGreaterThan(0);
    expect(rest.pairedRatio.lower).toBeLessThanOrEqual(rest.pairedRatio.upper);
  }
  expect(result.series[0]?.ratio).toBe(1);
});

test('a contender that ends before it listens fails the run with its own words', async () => {
  const broken: Contender = {
    name: 'broken',
    missing: () => undefined,
    command: () => [process.execPath, '-e', 'console.error("no such backend"); process.exit(3)'],
  };
  const run = measurePaired([broken], load, TINY);
  await expect(run).rejects.toThrow(/broken ended \(3\)\s+no such backend/);
});

test('a contender that swallows what it gets fails the run instead of looking fast', async () => {
  const deaf: Contender = {
    name: 'deaf',
    missing: () => undefined,
    command: ({ port }) => [process.execPath, '-e', `(${listenOnly})(${port})`],
  };
  const run = measurePaired([deaf], load, TINY);
  await expect(run).rejects.toThrow('no datagram came back through deaf');
});

test('a contender that dies under load fails the run with its own words', async () => {
  const mortal: Contender = {
    name: 'mortal',
    missing: () => undefined,
    command: ({ port }) => [process.execPath, '-e', `(${dieAtFirst})(${port})`],
  };
  const run = measurePaired([mortal], load, TINY);
  await expect(run).rejects.toThrow(/mortal ended \(4\)[^]*cannot go on/);
});

/** These two run in processes of their own. */
const listenOnly = `(port) => {
  const socket = require('node:dgram').createSocket('udp4');
  socket.bind(port, '127.0.0.1', () => console.log('listening'));
}`;

const dieAtFirst = `(port) => {
  const socket = require('node:dgram').createSocket('udp4');
  socket.on('message', () => { console.error('cannot go on'); process.exit(4); });
  socket.bind(port, '127.0.0.1', () => console.log('listening'));
}`;
