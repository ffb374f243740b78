import { expect, test } from 'vitest';
import { listenerId, requestId, socketId } from '../../../core/brand.ts';
import { healthSettings } from '../../../core/health/settings.ts';
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
import { objectionOf, told, turn } from './hand-made.ts';
import { TIMELINESS } from './timeliness.ts';

const LISTENER = listenerId(0);
const SOCKET = socketId(1, LISTENER);
const SECOND = 1_000_000;

test('a silent flow that closes in time is accepted, one that stays is not', () => {
  const opened = [...flow(0), ...turns(0, 2 * SECOND, 100)];
  expect(
    objectionOf(TIMELINESS, [...opened, closed(), ...turns(2 * SECOND, 4 * SECOND, 200)]),
  ).toBeUndefined();
  expect(objectionOf(TIMELINESS, [...opened, ...turns(2 * SECOND, 4 * SECOND, 200)])).toContain(
    'is silent since 0',
  );
});

test('few turns, or little time, excuse a process', () => {
  const late = 60 * SECOND;
  expect(objectionOf(TIMELINESS, [...flow(0), ...turns(late, late + SECOND, 10)])).toBeUndefined();
  expect(
    objectionOf(TIMELINESS, [...flow(0), ...turns(late, late + SECOND / 10, 1_000)]),
  ).toBeUndefined();
  expect(objectionOf(TIMELINESS, [...flow(0), ...turns(late, late + 4 * SECOND, 10)])).toContain(
    'silent',
  );
});

test('a datagram either way keeps a flow', () => {
  const payload = new Uint8Array(4);
  const reply = told('DataInput', {
    process: 1,
    plane: 0,
    input: { kind: 'BackendArrived', socket: SOCKET, payload },
    now: instant(2 * SECOND),
  });
  const history = [...flow(0), reply, ...turns(2 * SECOND, 3.9 * SECOND, 200)];
  expect(objectionOf(TIMELINESS, history)).toBeUndefined();
});

test('a flow whose socket has no room is not judged', () => {
  const watched = told('DataOutput', {
    process: 1,
    plane: 0,
    output: { kind: 'WatchUpstream', socket: SOCKET },
  });
  const later = turns(2 * SECOND, 6 * SECOND, 200);
  expect(objectionOf(TIMELINESS, [...flow(0), watched, ...later])).toBeUndefined();
});

test('a command that nobody answers is found', () => {
  const request = requestId(1);
  const asked = told('ControlInput', {
    process: 1,
    input: { kind: 'Command', request, command: { kind: 'Status' } },
    now: instant(0),
  });
  const reply = { ok: true, changed: false, generation: 1 } as const;
  const answered = told('ControlOutput', { process: 1, output: { kind: 'Reply', request, reply } });
  const after = turns(1, SECOND, 100);
  expect(objectionOf(TIMELINESS, [asked, answered, ...after])).toBeUndefined();
  expect(objectionOf(TIMELINESS, [asked, ...after])).toContain('Status was asked at 0');
});

test('a command that its control plane never hears of is found', () => {
  const command = { kind: 'Status' } as const;
  const started = told('Started', { process: 1, proxy: 0, config: configOf({}), descriptors: 0 });
  const order = told('Acted', { action: { kind: 'Order', proxy: 0, command } });
  const heard = told('ControlInput', {
    process: 1,
    input: { kind: 'Command', request: requestId(1), command },
    now: instant(0),
  });
  const next = told('Acted', { action: { kind: 'Begin', phase: 'drain' } });
  const crashed = told('Crashed', { process: 1, descriptors: 0 });
  expect(objectionOf(TIMELINESS, [started, order, heard, next])).toBeUndefined();
  expect(objectionOf(TIMELINESS, [started, crashed, order, next])).toBeUndefined();
  expect(objectionOf(TIMELINESS, [started, order, next])).toContain('process 1 heard of nothing');
});

test('a probe that does not start is found', () => {
  const health = healthSettings({
    probeInterval: milliseconds(1_000),
    probeTimeout: milliseconds(100),
  });
  const settings = clusterOf({ backends: backendList(1), health });
  const set = told('ControlOutput', {
    process: 1,
    output: {
      kind: 'Direct',
      message: { generation: 1, directive: { kind: 'SetCluster', settings } },
    },
  });
  const started = (at: number): History => [
    told('ControlTimeout', { process: 1, now: instant(at) }),
    told('ControlOutput', {
      process: 1,
      output: {
        kind: 'StartProbe',
        probe: at,
        cluster: 'cluster',
        target: backendAddress(0),
        mode: 'tcp',
        payload: undefined,
        header: undefined,
        expectReply: true,
      },
    }),
  ];
  const first = [set, ...started(1), ...turns(1, SECOND, 100)];
  const later = turns(SECOND + 10, 1.9 * SECOND, 100);
  expect(objectionOf(TIMELINESS, [...first, ...started(SECOND), ...later])).toBeUndefined();
  expect(objectionOf(TIMELINESS, [...first, ...later])).toContain('a probe of cluster');
});

function flow(at: number): History {
  const payload = new Uint8Array(4);
  const directive = { kind: 'AddListener', listener: LISTENER, config: listenerOf({}) } as const;
  const input = {
    kind: 'ClientArrived',
    listener: LISTENER,
    src: clientAddress(0),
    local: undefined,
    payload,
  } as const;
  const open = {
    kind: 'OpenUpstream',
    socket: SOCKET,
    backend: backendAddress(0),
    source: undefined,
  } as const;
  const now = instant(at);
  return [
    told('DataInput', {
      process: 1,
      plane: 0,
      input: { kind: 'Directed', message: { generation: 1, directive } },
      now,
    }),
    told('DataInput', {
      process: 1,
      plane: 0,
      input: {
        kind: 'Directed',
        message: { generation: 1, directive: { kind: 'SetCluster', settings: clusterOf({}) } },
      },
      now,
    }),
    told('DataInput', { process: 1, plane: 0, input, now }),
    told('DataOutput', { process: 1, plane: 0, output: open }),
  ];
}

function closed(): Told {
  return told('DataOutput', {
    process: 1,
    plane: 0,
    output: { kind: 'CloseUpstream', socket: SOCKET },
  });
}

/** So many turns, evenly between two times. */
function turns(from: number, to: number, count: number): History {
  return Array.from({ length: count }, (_, number) => {
    const now = Math.floor(from + ((to - from) * (number + 1)) / count);
    return turn({ turns: Math.floor(from / 1_000) + number, flows: 1 }, now);
  });
}
