import { expect, test } from 'vitest';
import { listenerId } from '../../../core/brand.ts';
import type { ClusterSettings } from '../../../core/config.ts';
import type { ControlEvent, ControlInput, ControlOutput } from '../../../core/control-contract.ts';
import type { Directive, Report } from '../../../core/directives.ts';
import type { ProbeAnswer, ProbeOutcome } from '../../../core/health/probe-contract.ts';
import { healthSettings } from '../../../core/health/settings.ts';
import { instant, milliseconds } from '../../../core/time.ts';
import { backendAddress, backendList, clusterOf } from '../builders.ts';
import type { History, Told } from '../history.ts';
import { objectionOf, told } from './hand-made.ts';
import { HEALTH } from './health.ts';

const CLUSTER = 'cluster';
const TIMEOUT = 100_000;
const SETTINGS = healthSettings({
  mode: 'TCP_PROBE',
  rise: 2,
  fall: 2,
  probeTimeout: milliseconds(TIMEOUT / 1_000),
});
const TWO = clusterOf({ backends: backendList(2), health: SETTINGS });
const BEGUN = [command(0), set(TWO)];
const DOWN = [...probed(1, 0, 'refused'), ...probed(2, 200_000, 'refused'), ...turned('down')];

test('a backend that fails often enough and is said to be down is accepted', () => {
  expect(objectionOf(HEALTH, [...BEGUN, ...DOWN, command(300_000)])).toBeUndefined();
});

test('one that rises again is accepted, and one that rises too early is not', () => {
  const up = (at: number, ...answers: ProbeAnswer[]): History => [
    ...answers.flatMap((answer, number) => probed(3 + number, at + 1_000 * number, answer)),
    ...turned('up', 'ok'),
  ];
  expect(objectionOf(HEALTH, [...BEGUN, ...DOWN, ...up(300_000, 'ok', 'ok')])).toBeUndefined();
  expect(objectionOf(HEALTH, [...BEGUN, ...DOWN, ...up(300_000, 'ok')])).toContain(
    'by its probes: nothing',
  );
  const broken = up(300_000, 'ok', 'refused', 'ok');
  expect(objectionOf(HEALTH, [...BEGUN, ...DOWN, ...broken])).toContain('by its probes: nothing');
});

test('a change that is not told is found, or told late', () => {
  const [directed, event] = turned('down');
  if (directed === undefined || event === undefined) throw new Error('there are two words');
  const answers = DOWN.slice(0, -2);
  expect(objectionOf(HEALTH, [...BEGUN, ...answers, command(300_000)])).toContain('should be down');
  const late = [...BEGUN, ...answers, command(300_000), directed, event];
  expect(objectionOf(HEALTH, late)).toContain('should be down');
  expect(objectionOf(HEALTH, [...BEGUN, ...answers, event, command(300_000)])).toContain(
    'told was true',
  );
});

test('a probe that nobody answers in time is a failure, and one that is cancelled early is none', () => {
  const cancelled = (at: number): History => [woken(at), output({ kind: 'CancelProbe', probe: 2 })];
  const first = [...probed(1, 0, 'refused'), ...started(2, 100)];
  const timedOut = [
    ...first,
    ...cancelled(TIMEOUT + 100),
    ...turned('down', 'timeout'),
    command(300_000),
  ];
  expect(objectionOf(HEALTH, [...BEGUN, ...timedOut])).toBeUndefined();
  expect(objectionOf(HEALTH, [...BEGUN, ...first, ...cancelled(TIMEOUT)])).toContain(
    'cancelled before its time',
  );
  const overlooked = [...first, woken(TIMEOUT + 200), command(300_000)];
  expect(objectionOf(HEALTH, [...BEGUN, ...overlooked])).toContain('began at');
});

test('an answer that comes at the end of its time is none', () => {
  const late = [...started(1, 0), answered(1, 'ok', TIMEOUT), ...probed(2, TIMEOUT + 1, 'refused')];
  expect(objectionOf(HEALTH, [...BEGUN, ...late, ...turned('down')])).toBeUndefined();
});

test('health outlives a change of the cluster, but not the end of probing', () => {
  const other = { ...TWO, sendProxyProtocol: true };
  expect(
    objectionOf(HEALTH, [
      ...BEGUN,
      ...DOWN,
      command(300_000),
      set(other),
      told1(false),
      command(1),
    ]),
  ).toBeUndefined();
  expect(
    objectionOf(HEALTH, [...BEGUN, ...DOWN, command(300_000), set(other), told1(true), command(1)]),
  ).toContain('told was true');
  const unwatched = set({ ...TWO, health: undefined });
  const ended = [
    ...BEGUN,
    ...DOWN,
    command(300_000),
    unwatched,
    ...turned('up', 'unwatched'),
    command(1),
  ];
  expect(objectionOf(HEALTH, ended)).toBeUndefined();
  expect(
    objectionOf(HEALTH, [...BEGUN, ...DOWN, command(300_000), unwatched, command(1)]),
  ).toContain('should be up');
});

test('silence turns nobody down, and three silences weigh as a success', () => {
  const silent = clusterOf({
    backends: backendList(1),
    health: {
      ...SETTINGS,
      mode: 'UDP_PROBE',
      udpProbePayload: new Uint8Array([1]),
      expectReply: false,
      rise: 1,
    },
  });
  const silence = (probe: number, at: number): History => [
    command(at),
    output({ ...start(probe), mode: 'udp', payload: new Uint8Array([1]), expectReply: false }),
    woken(at + TIMEOUT),
    output({ kind: 'CancelProbe', probe }),
  ];
  const begun = [command(0), set(silent)];
  const quiet = [1, 2, 3].flatMap((probe) => silence(probe, probe * 200_000));
  expect(objectionOf(HEALTH, [...begun, ...quiet, command(1_000_000)])).toBeUndefined();
  expect(objectionOf(HEALTH, [...begun, ...quiet, ...turned('down', 'silence')])).toContain(
    'by its probes: nothing',
  );
});

test('a probe of somebody else, or by another way, is found', () => {
  const strange = output({ ...start(1), target: backendAddress(7) });
  expect(objectionOf(HEALTH, [...BEGUN, command(1), strange])).toContain('asks');
  const otherwise = output({ ...start(1), mode: 'udp', payload: new Uint8Array([1]) });
  expect(objectionOf(HEALTH, [...BEGUN, command(1), otherwise])).toContain('by udp');
  expect(objectionOf(HEALTH, [...BEGUN, ...started(1, 1), ...started(2, 2)])).toContain(
    'two probes',
  );
});

test('who is ejected was refused by several flows, and is not the last', () => {
  const refusals = [0, 1, 2, 3, 4, 5].map((number) => refusal(number % 3, number));
  const out = [told1(false), ejected(10_000_000)];
  expect(objectionOf(HEALTH, [...BEGUN, ...refusals, ...out, command(100)])).toBeUndefined();
  expect(objectionOf(HEALTH, [...BEGUN, ...refusals.slice(1), ...out])).toContain('5 refusals');
  expect(
    objectionOf(HEALTH, [...BEGUN, ...refusals.map((_, at) => refusal(0, at)), ...out]),
  ).toContain('1 flows');
  const alone = [command(0), set(clusterOf({ backends: backendList(1) }))];
  expect(objectionOf(HEALTH, [...alone, ...refusals, ...out])).toContain('nobody else');
  const stays = [...BEGUN, ...refusals, ...out, woken(10_000_000), command(10_000_001)];
  expect(objectionOf(HEALTH, stays)).toContain('ejected until');
});

test('available backends are counted', () => {
  const counts = (available: number): Told =>
    output({
      kind: 'Event',
      event: { kind: 'Availability', cluster: CLUSTER, available, total: 2 },
    });
  expect(objectionOf(HEALTH, [...BEGUN, ...DOWN, counts(1), command(300_000)])).toBeUndefined();
  expect(objectionOf(HEALTH, [...BEGUN, ...DOWN, counts(2), command(300_000)])).toContain(
    'has 1 of 2',
  );
});

function input(one: ControlInput, at: number): Told {
  return told('ControlInput', { process: 1, input: one, now: instant(at) }, at);
}

/** An input that leads to nothing by itself. */
function command(at: number): Told {
  const report: Report = {
    kind: 'UpstreamFailed',
    listener: listenerId(0),
    errno: 'EMFILE',
    source: undefined,
  };
  return input({ kind: 'Reported', report }, at);
}

function woken(at: number): Told {
  return told('ControlTimeout', { process: 1, now: instant(at) }, at);
}

function output(one: ControlOutput): Told {
  return told('ControlOutput', { process: 1, output: one });
}

function direct(directive: Directive): Told {
  return output({ kind: 'Direct', message: { generation: 1, directive } });
}

function set(settings: ClusterSettings): Told {
  return direct({ kind: 'SetCluster', settings });
}

function start(probe: number): Extract<ControlOutput, { kind: 'StartProbe' }> {
  return {
    kind: 'StartProbe',
    probe,
    cluster: CLUSTER,
    target: backendAddress(0),
    mode: 'tcp',
    payload: undefined,
    header: undefined,
    expectReply: true,
  };
}

function started(probe: number, at: number): History {
  return [command(at), output(start(probe))];
}

function answered(probe: number, answer: ProbeAnswer, at: number): Told {
  return input({ kind: 'ProbeAnswered', probe, answer }, at);
}

function probed(probe: number, at: number, answer: ProbeAnswer): History {
  return [...started(probe, at), answered(probe, answer, at + 100)];
}

/** What data planes are told of backend 0. */
function told1(healthy: boolean): Told {
  return direct({ kind: 'SetHealth', cluster: CLUSTER, address: backendAddress(0), healthy });
}

function turned(to: 'up' | 'down', outcome: ProbeOutcome | 'unwatched' = 'refused'): History {
  const event: ControlEvent = {
    kind: 'HealthChanged',
    cluster: CLUSTER,
    address: backendAddress(0),
    from: to === 'up' ? 'down' : 'up',
    to,
    evidence:
      outcome === 'unwatched'
        ? { kind: 'unwatched' }
        : { kind: 'probe', mode: 'tcp', outcome, streak: 2 },
  };
  return [told1(to === 'up'), output({ kind: 'Event', event })];
}

function refusal(flow: number, at: number): Told {
  const about = { cluster: CLUSTER, address: backendAddress(0) };
  return input({ kind: 'Reported', report: { kind: 'BackendRefused', ...about, flow } }, at);
}

function ejected(until: number): Told {
  const evidence = { kind: 'refusals', refusals: 6 } as const;
  const about = { cluster: CLUSTER, address: backendAddress(0), until: instant(until), evidence };
  return output({ kind: 'Event', event: { kind: 'BackendEjected', ...about } });
}
