import { expect, test } from 'vitest';
import { listenerId } from '../../../core/brand.ts';
import { NO_SOURCE_RATES, type ClusterSettings } from '../../../core/config.ts';
import type { Directive } from '../../../core/directives.ts';
import { instant, milliseconds } from '../../../core/time.ts';
import {
  backendAddress,
  backendList,
  clientAddress,
  clusterOf,
  configOf,
  listenerOf,
} from '../builders.ts';
import type { History, Told } from '../history.ts';
import type { Message } from '../message.ts';
import { FAULTLESS_OS } from '../os-faults.ts';
import { objectionOf, told, turn } from './hand-made.ts';
import { LIVENESS } from './liveness.ts';

const FRONT = listenerOf({}).address;
const LATER = told('PhaseBegan', { phase: 'drain' }, 9_000_000);

test('questions that are answered are accepted', () => {
  const answers = [heard(1, 4_010_000), asked(2, 4_100_000), heard(2, 4_110_000)];
  expect(
    objectionOf(LIVENESS, [...healed(), asked(1, 4_000_000), ...answers, LATER]),
  ).toBeUndefined();
});

test('one that is not answered is found, with what is pending', () => {
  const history = [
    ...healed(),
    asked(1, 4_000_000),
    turn({ flows: 1, upstreams: 1, listeners: 1, waiting: 3 }),
  ];
  const objection = objectionOf(LIVENESS, [...history, LATER]);
  expect(objection).toContain('is sent');
  expect(objection).toContain('3 datagrams wait in egress');
  const reached = told('BackendHeard', {
    backend: 0,
    from: FRONT,
    header: { kind: 'NotProxied' },
    bytes: 12,
    message: message('request', 1),
  });
  expect(objectionOf(LIVENESS, [...history, reached, LATER])).toContain('is at its backend');
});

test('an answer that comes too late is found when it comes', () => {
  const history = [...healed(), asked(1, 4_000_000), heard(1, 4_500_000)];
  expect(objectionOf(LIVENESS, history)).toContain('was asked 500000 µs ago');
});

test('whoever asks again still waits for the first answer', () => {
  const history = [...healed(), asked(1, 4_000_000), asked(2, 4_050_000), heard(2, 4_060_000)];
  expect(objectionOf(LIVENESS, [...history, LATER])).toContain('question 1 of client 0');
});

test('nobody is judged before a world has healed, or after it was disturbed', () => {
  expect(objectionOf(LIVENESS, [...healed(), asked(1, 1_100_000), LATER])).toBeUndefined();
  const disturbed = told('Acted', { action: { kind: 'Crash', proxy: 0 } }, 4_000_100);
  expect(
    objectionOf(LIVENESS, [...healed(), asked(1, 4_000_000), disturbed, LATER]),
  ).toBeUndefined();
});

test('where sends may stall, whoever has asked in vain for long enough is judged again', () => {
  const stalls = { ...FAULTLESS_OS, upstreamStalls: { numerator: 1, denominator: 2 } };
  const lasts = milliseconds(10);
  const action = { kind: 'HostFault', proxy: 0, faults: stalls, lasts } as const;
  const stalled = [told('Acted', { action }), ...healed()];
  const inVain = (until: number): History => [...stalled, asked(1, 4_000_000), asked(2, until)];
  const late = told('PhaseBegan', { phase: 'drain' }, 19_000_000);
  expect(objectionOf(LIVENESS, [...inVain(9_400_000), late])).toBeUndefined();
  expect(objectionOf(LIVENESS, [...inVain(9_500_000), late])).toContain('question 2 of client 0');
  const between = [...stalled, asked(1, 4_000_000), heard(1, 4_010_000), asked(2, 9_500_000)];
  expect(objectionOf(LIVENESS, [...between, late])).toBeUndefined();
});

test('clusters that may refuse are not judged, nor what the proxy may drop', () => {
  const rates = { ...NO_SOURCE_RATES, newFlowsPerSecond: 1, newFlowsBurst: 1 };
  for (const cluster of [{ rates }, { maxFlowsPerIp: 1 }, { backends: [] }])
    expect(objectionOf(LIVENESS, [...healed(cluster), asked(1, 4_000_000), LATER])).toBeUndefined();
  expect(objectionOf(LIVENESS, [...healed(), asked(1, 4_000_000, 2_000), LATER])).toBeUndefined();
});

function healed(cluster: Partial<ClusterSettings> = {}): History {
  return [
    told('Started', { process: 1, proxy: 0, config: configOf({}), descriptors: 0 }),
    directed({ kind: 'SetCluster', settings: clusterOf({ backends: backendList(1), ...cluster }) }),
    directed({ kind: 'AddListener', listener: listenerId(0), config: listenerOf({}) }),
    told('PhaseBegan', { phase: 'heal' }, 1_000_000),
  ];
}

function directed(directive: Directive): Told {
  const input = { kind: 'Directed', message: { generation: 1, directive } } as const;
  return told('DataInput', { process: 1, plane: 0, input, now: instant(0) });
}

function message(kind: Message['kind'], serial: number): Message {
  return { kind, client: 0, serial, backend: 0, copy: 0 };
}

function asked(serial: number, at: number, bytes = 12): Told {
  const about = { client: 0, src: clientAddress(0), dst: FRONT, bytes };
  return told('ClientSent', { ...about, message: message('request', serial) }, at);
}

function heard(serial: number, at: number): Told {
  const about = { client: 0, local: clientAddress(0), from: backendAddress(0), bytes: 12 };
  return told('ClientHeard', { ...about, message: message('answer', serial) }, at);
}
