/** Misuse of a flow machine is detected, not documented: each of these is a bug of the caller. */
import { expect, test } from 'vitest';
import { atSecond, bytes, dropped, FlowRig } from '../test/flow-rig.ts';
import { flowId } from './brand.ts';
import { instant } from './time.ts';

const r = bytes('r');

test('a call that finds undrained outputs is a bug of the caller', () => {
  const { manager } = new FlowRig();
  const input = { kind: 'BackendDatagram', flow: flowId(0), payload: r } as const;
  manager.handleInput(input, instant(0));
  for (const call of [
    () => manager.handleInput(input, instant(0)),
    () => manager.handleTimeout(instant(0)),
    () => manager.abortFlow(flowId(0), instant(0)),
    () => manager.closeAll(instant(0)),
  ]) {
    expect(call).toThrow('drained');
  }
  expect(manager.pollOutput()).toEqual(dropped('UnknownFlow'));
  expect(() => manager.closeAll(instant(0))).not.toThrow();
});

test('time that goes back is a bug of the caller', () => {
  const { manager } = new FlowRig();
  manager.handleTimeout(atSecond(5));
  for (const call of [
    () => manager.handleInput({ kind: 'Config', event: { kind: 'Drain' } }, atSecond(4.999999)),
    () => manager.handleTimeout(atSecond(0)),
    () => manager.abortFlow(flowId(0), atSecond(0)),
    () => manager.closeAll(atSecond(0)),
  ]) {
    expect(call).toThrow('time');
  }
  expect(() => manager.handleTimeout(atSecond(5))).not.toThrow();
});
