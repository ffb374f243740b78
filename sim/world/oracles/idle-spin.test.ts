import { expect, test } from 'vitest';
import { listenerId, socketId } from '../../../core/brand.ts';
import type { Wake } from '../../../core/plane-contract.ts';
import { instant } from '../../../core/time.ts';
import { objectionOf, told, turn } from './hand-made.ts';
import type { Told } from '../history.ts';
import { IDLE_SPIN } from './idle-spin.ts';

const SOCKET = socketId(1, listenerId(0));
const ASKED = turn({ wake: wakeAt(100, 'flow-idle') }, 0);
const CLOSED = told('DataOutput', {
  process: 1,
  plane: 0,
  output: { kind: 'CloseUpstream', socket: SOCKET },
});

test('a wake-up that closes a flow is accepted', () => {
  expect(objectionOf(IDLE_SPIN, [ASKED, woken(100), CLOSED, turn()])).toBeUndefined();
});

test('an early wake-up may find nothing to do', () => {
  expect(objectionOf(IDLE_SPIN, [ASKED, woken(99), turn()])).toBeUndefined();
});

test('a wake-up that was asked for and does nothing is found', () => {
  expect(objectionOf(IDLE_SPIN, [ASKED, woken(100), turn()])).toContain('flow-idle');
});

test('slices may show nothing, but not for ever', () => {
  const slice = [woken(100), turn({ wake: wakeAt(100, 'maglev-build') })];
  const first = turn({ wake: wakeAt(100, 'maglev-build') });
  const slices = (count: number): Told[] => Array.from({ length: count }, () => slice).flat();
  expect(objectionOf(IDLE_SPIN, [first, ...slices(12)])).toBeUndefined();
  expect(objectionOf(IDLE_SPIN, [first, ...slices(300)])).toContain('slices');
});

test('a control plane that is woken at one instant over and over is found', () => {
  const wakes = (count: number, step: number): Told[] =>
    Array.from({ length: count }, (_, number) =>
      told('ControlTimeout', { process: 1, now: instant(7 + number * step) }),
    );
  expect(objectionOf(IDLE_SPIN, wakes(100, 0))).toContain('woken over and over');
  expect(objectionOf(IDLE_SPIN, wakes(100, 1))).toBeUndefined();
});

function wakeAt(at: number, reason: Wake['reason']): Wake {
  return { at: instant(at), reason };
}

function woken(now: number): Told {
  return told('DataTimeout', { process: 1, plane: 0, now: instant(now) });
}
