import { expect, test } from 'vitest';
import { backendAddress, configOf } from '../builders.ts';
import { DESCRIPTORS } from './descriptors.ts';
import { objectionOf, told, turn } from './hand-made.ts';

const STARTED = told('Started', { process: 1, proxy: 0, config: configOf({}), descriptors: 3 });
const EXITED = told('Exited', { process: 1, descriptors: 3, probes: 0 });
const STARTED_PROBE = told('ControlOutput', {
  process: 1,
  output: {
    kind: 'StartProbe',
    probe: 1,
    cluster: 'cluster',
    target: backendAddress(0),
    mode: 'tcp',
    payload: undefined,
    header: undefined,
    expectReply: true,
  },
});
const CANCELLED_PROBE = told('ControlOutput', {
  process: 1,
  output: { kind: 'CancelProbe', probe: 1 },
});

test('a process that holds what it needs is accepted', () => {
  const history = [
    STARTED,
    turn({ descriptors: 4, listeners: 1 }),
    STARTED_PROBE,
    turn({ descriptors: 8, listeners: 1, flows: 3, probes: 1 }),
    CANCELLED_PROBE,
    turn({ descriptors: 7, listeners: 1, flows: 3 }),
    EXITED,
  ];
  expect(objectionOf(DESCRIPTORS, history)).toBeUndefined();
});

test('two processes on two hosts have nothing to do with each other', () => {
  const other = told('Started', { process: 2, proxy: 1, config: configOf({}), descriptors: 0 });
  const history = [STARTED, other, turn({ process: 2, descriptors: 0 }), turn({ descriptors: 3 })];
  expect(objectionOf(DESCRIPTORS, history)).toBeUndefined();
  expect(
    objectionOf(DESCRIPTORS, [other, STARTED, ...history.slice(2).toReversed()]),
  ).toBeUndefined();
});

test('a flow that nobody closed the socket of is found, and a flow without one', () => {
  expect(objectionOf(DESCRIPTORS, [STARTED, turn({ descriptors: 6, flows: 2 })])).toContain(
    '2 flows',
  );
  expect(objectionOf(DESCRIPTORS, [STARTED, turn({ descriptors: 4, flows: 2 })])).toContain(
    '2 flows',
  );
});

test('a probe that was ended and holds its descriptor is found', () => {
  const history = [STARTED, STARTED_PROBE, CANCELLED_PROBE, turn({ descriptors: 4, probes: 1 })];
  expect(objectionOf(DESCRIPTORS, history)).toContain('1 probes, of which 0 go on');
});

test('a descriptor that is left at the end is found', () => {
  const exited = told('Exited', { process: 1, descriptors: 4, probes: 0 });
  expect(objectionOf(DESCRIPTORS, [STARTED, exited])).toContain('began with 3 and left 4');
  const crashed = told('Crashed', { process: 1, descriptors: 4 });
  expect(objectionOf(DESCRIPTORS, [STARTED, crashed])).toContain('began with 3 and left 4');
});

test('a probe whose end is still on its way is no leak', () => {
  const exited = told('Exited', { process: 1, descriptors: 4, probes: 1 });
  expect(objectionOf(DESCRIPTORS, [STARTED, exited])).toBeUndefined();
});
