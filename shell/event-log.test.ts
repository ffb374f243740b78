import { pino } from 'pino';
import { beforeEach, expect, test } from 'vitest';
import { ipv4, type ControlEvent } from '../core/index.ts';
import { logEvent } from './event-log.ts';
import { LogLimiter, type Log } from './log.ts';

const BACKEND = ipv4(0x0a000001, 53);
const DOWN: ControlEvent = {
  kind: 'HealthChanged',
  cluster: 'dns',
  address: BACKEND,
  from: 'up',
  to: 'down',
  evidence: { kind: 'probe', mode: 'tcp', outcome: 'timeout', streak: 3 },
};
const UP: ControlEvent = { ...DOWN, from: 'down', to: 'up', evidence: { kind: 'unwatched' } };

let lines: unknown[];
let log: Log;
let clock: number;
let limiter: LogLimiter;

beforeEach(() => {
  lines = [];
  clock = 0;
  limiter = new LogLimiter(() => clock);
  log = pino(
    { level: 'info', base: null, timestamp: false },
    { write: (line) => void lines.push(JSON.parse(line)) },
  );
});

test('a transition is one line with its evidence: a warning for down, information for up', () => {
  tell(DOWN, UP);
  const about = { cluster: 'dns', backend: '10.0.0.1:53', suppressed: 0 };
  expect(lines).toEqual([
    { level: 40, ...about, evidence: 'tcp probe: timeout', streak: 3, msg: 'backend down' },
    { level: 30, ...about, evidence: 'no longer probed', msg: 'backend up' },
  ]);
});

test('an outage is an error that says what becomes of new flows, and its end is information', () => {
  const outage = { kind: 'NoAvailableBackends', cluster: 'dns', total: 2 } as const;
  tell({ ...outage, failOpen: false });
  tell({ kind: 'ClusterRecovered', cluster: 'dns', available: 1 });
  tell({ ...outage, cluster: 'ntp', failOpen: true });
  expect(lines).toMatchObject([
    { level: 50, total: 2, msg: 'no backend is available: new flows are refused' },
    { level: 30, available: 1, msg: 'cluster recovered' },
    { level: 50, cluster: 'ntp', msg: 'no backend is available: every one is tried' },
  ]);
});

test('a backend that flaps is one line of each kind in ten seconds, which says how many there were; another one is news', () => {
  for (let turn = 0; turn < 5; turn += 1) tell(DOWN, UP);
  expect(lines).toHaveLength(2);
  tell({ ...DOWN, address: ipv4(0x0a000002, 53) }, { ...DOWN, cluster: 'ntp' });
  expect(lines).toHaveLength(4);
  clock = 10_000;
  tell(DOWN);
  expect(lines.at(-1)).toMatchObject({ msg: 'backend down', suppressed: 4 });
});

test('gauges are no news', () => {
  tell({ kind: 'Availability', cluster: 'dns', available: 1, total: 1 });
  expect(lines).toEqual([]);
});

function tell(...events: readonly ControlEvent[]): void {
  for (const event of events) logEvent(log, limiter, event);
}
