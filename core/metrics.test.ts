/** The fold of outputs into counters, and the laws that no two figures break. */
import { DURATION_RANGES } from './flow-durations.ts';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { machines, steps } from '../test/flow-arbitraries.ts';
import {
  A,
  armed,
  closed,
  CREATED,
  dropped,
  EVICTED,
  FlowRig,
  forwarded,
  opened,
  returned,
  SHED,
  SHED_SOURCE,
} from '../test/flow-rig.ts';
import {
  activeFlows,
  closesByReason,
  CATALOGUE,
  droppedDatagrams,
  dropsByReason,
  foldOutput,
  newCounters,
  unaccountedDatagrams,
} from './metrics.ts';

test('every counter is in the catalogue, under a name of its own, and starts at zero', () => {
  const counters = newCounters();
  expect(Object.keys(CATALOGUE).sort()).toEqual(Object.keys(counters).sort());
  expect(new Set(Object.values(CATALOGUE).map(({ name }) => name)).size).toBe(
    Object.keys(CATALOGUE).length,
  );
  expect(new Set(Object.values(counters))).toEqual(new Set([0]));
  for (const { name, help } of Object.values(CATALOGUE)) {
    expect(name).toMatch(/^udp(\.[a-z0-9_]+)+$/);
    expect(help).not.toBe('');
  }
});

test.each([
  ['flowsCreated', [CREATED]],
  ['flowsEvicted', [EVICTED]],
  ['flowsShed', [SHED]],
  ['flowsShedSourceLimit', [SHED_SOURCE]],
  ['droppedInvalid', [dropped('Invalid')]],
  ['droppedTruncated', [dropped('Truncated')]],
  ['droppedNoBackend', [dropped('NoBackend')]],
  ['droppedShed', [dropped('Shed')]],
  ['droppedUnknownFlow', [dropped('UnknownFlow')]],
] as const)('%s counts its own output and no other', (name, outputs) => {
  const counters = newCounters();
  for (const output of outputs) foldOutput(counters, output);
  expect(counters).toEqual({ ...newCounters(), [name]: 1 });
});

test('datagrams are counted with their bytes, by the metric and not by the send', () => {
  const counters = newCounters();
  const payload = new Uint8Array(100);
  for (const output of [...forwarded(0, payload), ...returned(0, new Uint8Array(7), A)]) {
    foldOutput(counters, output);
  }
  expect(counters).toEqual({
    ...newCounters(),
    datagramsIn: 1,
    bytesIn: 100,
    datagramsOut: 1,
    bytesOut: 7,
  });
});

test('what is no metric, no drop and no close counts nothing', () => {
  const counters = newCounters();
  for (const output of [armed(3), opened(0)]) {
    foldOutput(counters, output);
  }
  expect(counters).toEqual(newCounters());
});

test('whatever a machine did: active flows are its flows, each datagram ended once, and no counter fell', () => {
  fc.assert(
    fc.property(machines, fc.array(steps, { maxLength: 80, size: 'max' }), (machine, walk) => {
      const rig = new FlowRig(machine);
      const counters = newCounters();
      let now = 0;
      for (const { wait, action } of walk) {
        now += wait;
        const before = { ...counters };
        if (action.kind === 'client') counters.clientReceived += 1;
        if (action.kind === 'backend') counters.backendReceived += 1;
        for (const output of rig.perform(action, now / 1_000_000)) {
          foldOutput(counters, output);
          if (output.kind === 'SendToBackend') counters.forwarded += 1;
          if (output.kind === 'SendToClient') counters.returned += 1;
        }
        expect(activeFlows(counters)).toBe(rig.manager.flowCount);
        expect(unaccountedDatagrams(counters)).toBe(0);
        expect(sumOf(closesByReason(counters)), 'each close has one reason').toBe(
          counters.flowsEvicted,
        );
        expect(counters).toMatchObject({
          datagramsIn: counters.forwarded,
          datagramsOut: counters.returned,
        });
        for (const [name, count] of Object.entries(counters)) {
          expect(count).toBeGreaterThanOrEqual(new Map(Object.entries(before)).get(name) ?? 0);
        }
      }
    }),
  );
});

test('every reason to drop is in the sum of drops, and a datagram nobody accounts for shows', () => {
  const counters = newCounters();
  let sum = 0;
  for (const name of Object.keys(CATALOGUE)) {
    if (!name.startsWith('dropped')) continue;
    sum += 1;
    Object.assign(counters, { [name]: 1 });
  }
  expect(sum).toBe(14);
  expect(droppedDatagrams(counters)).toBe(sum);
  expect(unaccountedDatagrams({ ...counters, clientReceived: sum + 1 })).toBe(1);
});

test('drops are told by reason, and those that never happened are not told', () => {
  expect(dropsByReason(newCounters())).toEqual({});
  const counters = { ...newCounters(), droppedNoBackend: 2, droppedWqFull: 1, forwarded: 9 };
  expect(dropsByReason(counters)).toEqual({ no_backend: 2, wq_full: 1 });
});

test.each([
  ['Idle', 'idle'],
  ['ResponsesReached', 'responses'],
  ['RequestsReached', 'requests'],
  ['Drain', 'drain'],
  ['Aborted', 'aborted'],
  ['BackendLost', 'backend_lost'],
  ['Killed', 'killed'],
] as const)('B20: a flow that closed as %s is counted as %s', (reason, word) => {
  const counters = newCounters();
  for (const output of closed(0, reason)) foldOutput(counters, output);
  expect(closesByReason(counters)).toEqual({ [word]: 1 });
  expect(counters.flowsEvicted).toBe(1);
});

test('a flow that closed is counted once among those that lasted as long, unless it had no socket', () => {
  const counters = newCounters();
  for (const lasted of [0, 0.001, 0.0011, 29, 7_200]) {
    for (const output of closed(0, 'Idle', lasted)) foldOutput(counters, output);
  }
  for (const output of closed(0, 'Aborted', 5)) foldOutput(counters, output);
  expect(counters).toMatchObject({ lasted1ms: 2, lasted5ms: 1, lasted30s: 1, lastedLonger: 1 });
  expect(sumOf(Object.fromEntries(DURATION_RANGES.map(({ key }) => [key, counters[key]])))).toBe(5);
  expect(counters.lastedMicroseconds).toBe(7_229_002_100);
});

function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}
