import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Backend } from '../contract.ts';
import { after, instant, milliseconds, until, type Instant } from '../time.ts';
import type { BackendSet } from './backend-set.ts';
import { backend, backendSet } from './policy.laws.ts';

const now = instant(0);
const key = { high: 1, low: 2 };

test('it_should_find_the_backend_with_least_connections: live flows count, ended ones do not', () => {
  const [one, two, three] = [backend(1), backend(2), backend(3)];
  const set = backendSet('LEAST_LOADED', [one, two, three]);
  expect(openFlow(set)).toEqual([one]);
  expect(openFlow(set)).toEqual([two]);
  expect(openFlow(set)).toEqual([three]);
  set.flowClosed(two);
  expect(openFlow(set)).toEqual([two]);
  expect([one, two, three].map((each) => set.flowsOn(each))).toEqual([1, 1, 1]);
});

test('it_shouldnt_find_backend_with_least_connections_when_list_is_empty', () => {
  expect(backendSet('LEAST_LOADED', []).select(key, now)).toBeUndefined();
});

test('LEAST_LOADED spreads flows that stay evenly', () => {
  const all = [1, 2, 3].map((n) => backend(n));
  const set = backendSet('LEAST_LOADED', all);
  for (let count = 0; count < 30; count += 1) openFlow(set);
  expect(all.map((each) => set.flowsOn(each))).toEqual([10, 10, 10]);
});

test('POWER_OF_TWO takes the lighter of two distinct candidates, and the earlier of two equal ones', () => {
  const [one, two] = [backend(1), backend(2)];
  const set = backendSet('POWER_OF_TWO', [one, two]);
  for (let count = 0; count < 20; count += 1) expect(set.select(key, now)).toBe(one);
  set.flowOpened(one);
  for (let count = 0; count < 20; count += 1) expect(set.select(key, now)).toBe(two);
});

test('POWER_OF_TWO never picks the heaviest of many, and every other one sometimes', () => {
  const all = [1, 2, 3, 4].map((n) => backend(n));
  const set = backendSet('POWER_OF_TWO', all);
  for (const [index, each] of all.entries()) {
    for (let count = 0; count < index; count += 1) set.flowOpened(each);
  }
  const chosen = new Set(Array.from({ length: 200 }, () => set.select(key, now)));
  expect(chosen).toEqual(new Set(all.slice(0, 3)));
});

test('POWER_OF_TWO keeps a thousand flows that stay within a few of each other', () => {
  const all = [1, 2, 3, 4, 5].map((n) => backend(n));
  const set = backendSet('POWER_OF_TWO', all);
  for (let count = 0; count < 1_000; count += 1) openFlow(set);
  const flows = all.map((each) => set.flowsOn(each));
  expect(Math.max(...flows) - Math.min(...flows)).toBeLessThan(10);
});

test('REQUESTS counts the datagrams of the last ten seconds, in one-second steps', () => {
  const [one, two] = [backend(1), backend(2)];
  const set = backendSet('LEAST_LOADED', [one, two], 'REQUESTS');
  const at = (second: number): Instant => after(now, milliseconds(second * 1_000));
  for (const each of [one, two]) set.flowOpened(each);
  for (let count = 0; count < 3; count += 1) set.forwarded(one, at(0.5));
  for (let count = 0; count < 2; count += 1) set.forwarded(two, at(3.2));
  expect(set.select(key, at(9.9))).toBe(two);
  expect(set.select(key, at(10.5))).toBe(one);
  set.forwarded(one, at(10.5));
  set.forwarded(one, at(11));
  set.forwarded(one, at(12));
  expect(set.select(key, at(12.9))).toBe(two);
  expect(set.select(key, at(100))).toBe(one);
});

test('REQUESTS agrees with a list of all datagrams, whatever their spacing', () => {
  const steps = fc.array(
    fc.record({ wait: fc.integer({ min: 0, max: 13_000 }), toFirst: fc.boolean() }),
    { maxLength: 40 },
  );
  fc.assert(
    fc.property(steps, (list) => {
      const [one, two] = [backend(1), backend(2)];
      const set = backendSet('LEAST_LOADED', [one, two], 'REQUESTS');
      const sent: { second: number; to: Backend }[] = [];
      let at = now;
      let first: Instant | undefined;
      for (const { wait, toFirst } of list) {
        at = after(at, milliseconds(wait));
        first ??= at;
        const second = Math.floor(until(first, at) / 1_000_000);
        const to = toFirst ? one : two;
        set.forwarded(to, at);
        sent.push({ second, to });
        const recent = sent.filter((each) => each.second > second - 10);
        const count = (of: Backend): number => recent.filter((each) => each.to === of).length;
        expect(set.select(key, at)).toBe(count(two) < count(one) ? two : one);
      }
    }),
  );
});

test('REQUESTS does not depend on when the clock began to count', () => {
  for (const origin of [now, after(now, milliseconds(700))]) {
    const [one, two] = [backend(1), backend(2)];
    const set = backendSet('LEAST_LOADED', [one, two], 'REQUESTS');
    set.forwarded(one, after(origin, milliseconds(200)));
    expect(set.select(key, after(origin, milliseconds(10_100)))).toBe(two);
    expect(set.select(key, after(origin, milliseconds(10_200)))).toBe(one);
  }
});

test('CONNECTION_TIME compares smoothed probe times, and live flows while one has no time', () => {
  const [one, two] = [backend(1), backend(2)];
  const set = backendSet('LEAST_LOADED', [one, two], 'CONNECTION_TIME');
  set.flowOpened(one);
  expect(set.select(key, now)).toBe(two);
  set.probed(one.address, milliseconds(2));
  expect(set.select(key, now)).toBe(two);
  set.probed(two.address, milliseconds(3));
  expect(set.select(key, now)).toBe(one);
  set.probed(one.address, milliseconds(9));
  expect(set.select(key, now)).toBe(one);
  for (let count = 0; count < 5; count += 1) set.probed(one.address, milliseconds(9));
  expect(set.select(key, now)).toBe(two);
});

test('a new weight keeps the load of a backend, and flows of the old one still count and close', () => {
  const [one, two] = [backend(1), backend(2)];
  const set = backendSet('LEAST_LOADED', [one, two]);
  set.flowOpened(one);
  const changed = backend(1, { weight: 7 });
  set.setBackends([changed, two]);
  expect(set.flowsOn(changed)).toBe(1);
  expect(set.select(key, now)).toBe(two);
  set.flowClosed(one);
  expect(set.flowsOn(changed)).toBe(0);
  expect(set.select(key, now)).toBe(changed);
});

test('flows of a removed backend close, and count again if it comes back', () => {
  const [one, two] = [backend(1), backend(2)];
  const set = backendSet('LEAST_LOADED', [one, two]);
  set.flowOpened(one);
  set.flowOpened(one);
  set.setBackends([two]);
  set.flowClosed(one);
  const returned = backend(1);
  set.setBackends([returned, two]);
  expect(set.flowsOn(returned)).toBe(1);
  set.flowClosed(one);
  expect(set.flowsOn(returned)).toBe(0);
  expect(() => set.flowClosed(one)).toThrow();
});

test('live flows are what was opened and not closed, through any reconfiguration', () => {
  fc.assert(
    fc.property(fc.array(steps, { maxLength: 60 }), (list) => {
      const set = backendSet('LEAST_LOADED', [backend(1), backend(2)]);
      const live: Backend[] = [];
      for (const { kind, pick, backends } of list) {
        if (kind === 'reconfigure') set.setBackends(backends);
        if (kind === 'open') live.push(...openFlow(set));
        if (kind === 'close') for (const ended of live.splice(pick, 1)) set.flowClosed(ended);
        for (const each of set.backends) {
          expect(set.flowsOn(each)).toBe(live.filter(({ id }) => id === each.id).length);
        }
      }
    }),
  );
});

const steps = fc.record({
  kind: fc.constantFrom('open', 'open', 'close', 'reconfigure'),
  pick: fc.nat({ max: 5 }),
  backends: fc.array(
    fc
      .record({ n: fc.integer({ min: 1, max: 3 }), weight: fc.integer({ min: 1, max: 2 }) })
      .map(({ n, weight }) => backend(n, { weight })),
    { maxLength: 3 },
  ),
});

/** The backend that a new flow went to, if any. */
function openFlow(set: BackendSet): Backend[] {
  const chosen = set.select(key, now);
  if (chosen === undefined) return [];
  set.flowOpened(chosen);
  return [chosen];
}
