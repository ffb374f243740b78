import { expect, test } from 'vitest';
import { listenerId, requestId, socketId } from '../../../core/brand.ts';
import type { ControlOutput } from '../../../core/control-contract.ts';
import type { Directive } from '../../../core/directives.ts';
import type { PlaneInput, PlaneOutput } from '../../../core/plane-contract.ts';
import { instant } from '../../../core/time.ts';
import { backendAddress, configOf, listenerOf } from '../builders.ts';
import type { History, Told } from '../history.ts';
import { BASELINE } from './baseline.ts';
import { objectionOf, told, turn } from './hand-made.ts';

const LISTENER = listenerId(0);
const SOCKET = socketId(1, LISTENER);
const STARTED = told('Started', { process: 1, proxy: 0, config: configOf({}), descriptors: 0 });
const OPEN = directed({ kind: 'AddListener', listener: LISTENER, config: listenerOf({}) });
const HEAL = told('PhaseBegan', { phase: 'heal' }, 1_000_000);
const DRAIN = told('PhaseBegan', { phase: 'drain' }, 2_000_000);
const GIVES_UP = { at: instant(5_000_000), reason: 'socket-blocked' } as const;
const WATCHED = output({ kind: 'WatchUpstream', socket: SOCKET });

test('a world that heals is accepted', () => {
  expect(objectionOf(BASELINE, healed(turn({ listeners: 1 }, 1_900_000)))).toBeUndefined();
});

test('what still waits when a world has healed is found, unless it had no time to', () => {
  const waits = [WATCHED, turn({ listeners: 1, waiting: 2, wake: GIVES_UP }, 1_900_000)];
  expect(objectionOf(BASELINE, healed(...waits))).toContain('2 datagrams wait at socket');
  const disturbed = told('Acted', { action: { kind: 'Crash', proxy: 0 } }, 1_800_000);
  expect(objectionOf(BASELINE, healed(disturbed, ...waits))).toBeUndefined();
});

test('a listener that is not open, and a backend that is kept out, are found', () => {
  expect(objectionOf(BASELINE, healed(turn({ listeners: 0 }, 1_900_000)))).toContain(
    '0 of 1 listeners',
  );
  const fine = turn({ listeners: 1 }, 1_900_000);
  const about = { cluster: 'cluster', address: backendAddress(0) };
  const down = control({
    kind: 'Direct',
    message: { generation: 1, directive: { kind: 'SetHealth', ...about, healthy: false } },
  });
  expect(objectionOf(BASELINE, healed(down, fine))).toContain('keeps new flows from cluster');
  const evidence = { kind: 'refusals', refusals: 6 } as const;
  const until = instant(10_000_000);
  const ejected = control({
    kind: 'Event',
    event: { kind: 'BackendEjected', ...about, until, evidence },
  });
  expect(objectionOf(BASELINE, healed(down, ejected, fine))).toBeUndefined();
});

test('datagrams wait where somebody watches for room', () => {
  expect(
    objectionOf(BASELINE, [STARTED, WATCHED, turn({ waiting: 1, wake: GIVES_UP })]),
  ).toBeUndefined();
  expect(objectionOf(BASELINE, [STARTED, turn({ waiting: 1 })])).toContain('no socket is watched');
  const writable = input({ kind: 'UpstreamWritable', socket: SOCKET }, 0);
  expect(objectionOf(BASELINE, [STARTED, WATCHED, writable, turn({ waiting: 1 })])).toContain(
    'no socket is watched',
  );
});

test('whoever sleeps for longer than a socket may be without room is found', () => {
  const late = { at: instant(5_000_001), reason: 'flow-idle' } as const;
  for (const wake of [late, undefined])
    expect(objectionOf(BASELINE, [STARTED, WATCHED, turn({ waiting: 1, wake })])).toContain(
      'has had no room since 0',
    );
  const again = [input({ kind: 'Flushed' }, 1), WATCHED, turn({ waiting: 1, wake: late })];
  expect(objectionOf(BASELINE, [STARTED, WATCHED, ...again])).toBeUndefined();
});

test('an open is refused unseen shortly after one that failed, and not later', () => {
  const open = { socket: SOCKET, backend: backendAddress(0), source: undefined };
  const failed = input({ kind: 'OpenFailed', ...open, errno: 'EADDRINUSE', unsent: 0 }, 0);
  const refused = output({ kind: 'RefuseUpstream', ...open, errno: 'EADDRINUSE' });
  const later = (at: number): Told => input({ kind: 'Flushed' }, at);
  expect(objectionOf(BASELINE, [STARTED, failed, later(320_000), refused])).toBeUndefined();
  expect(objectionOf(BASELINE, [STARTED, failed, later(320_001), refused])).toContain(
    'refused socket',
  );
  expect(objectionOf(BASELINE, [STARTED, refused])).toContain('refused socket');
  const answered = [
    failed,
    later(200_000),
    refused,
    { ...failed, fact: { ...failed.fact, now: instant(200_000) } },
  ];
  expect(objectionOf(BASELINE, [STARTED, ...answered, later(400_000), refused])).toContain(
    'refused socket',
  );
});

test('a process that is told to stop and does not is found', () => {
  const command = {
    kind: 'Command',
    request: requestId(1),
    command: { kind: 'SoftStop' },
  } as const;
  const asked = told('ControlInput', { process: 1, input: command, now: instant(0) }, 0);
  const deadline = instant(1_000_000);
  const drain = control({
    kind: 'Direct',
    message: { generation: 1, directive: { kind: 'Drain', deadline } },
  });
  const end = (at: number): Told => told('PhaseBegan', { phase: 'drain' }, at);
  expect(objectionOf(BASELINE, [STARTED, asked, drain, end(2_900_000)])).toBeUndefined();
  expect(objectionOf(BASELINE, [STARTED, asked, drain, end(3_100_000)])).toContain(
    'should have ended',
  );
  const exited = told('Exited', { process: 1, descriptors: 0, probes: 0 }, 1_000_000);
  expect(objectionOf(BASELINE, [STARTED, asked, drain, exited, end(9_000_000)])).toBeUndefined();
});

function healed(...history: History): History {
  return [STARTED, OPEN, HEAL, ...history, DRAIN];
}

function directed(directive: Directive): Told {
  return input({ kind: 'Directed', message: { generation: 1, directive } }, 0);
}

function input(one: PlaneInput, now: number): Extract<Told, { kind: 'DataInput' }> {
  return told('DataInput', { process: 1, plane: 0, input: one, now: instant(now) }, now);
}

function output(one: PlaneOutput): Told {
  return told('DataOutput', { process: 1, plane: 0, output: one });
}

function control(one: ControlOutput): Told {
  return told('ControlOutput', { process: 1, output: one });
}
