import { expect, test } from 'vitest';
import { skip } from '../../test/e2e/peers.ts';
import { chooseDriver, type Choice } from './choose.ts';
import { loadLibc } from './libc.ts';

const NONE = 'koffi does not load: Error: not there';

test('takes node:dgram when told to, and looks no further', () => {
  expect(told(chooseDriver('dgram'))).toEqual(['dgram', 'io = "dgram"']);
});

test('falls back to node:dgram by itself only, and says why', () => {
  expect(told(chooseDriver('auto', NONE))).toEqual(['dgram', `no mmsg: ${NONE}`]);
  expect(chooseDriver('mmsg', NONE)).toBe(`no mmsg: ${NONE}`);
});

test('takes mmsg where it can be had', (context) => {
  if (typeof loadLibc() === 'string') return skip(context, 'mmsg cannot be had here');
  expect(told(chooseDriver('auto'))).toEqual(['mmsg', 'it can be had here']);
  return expect(told(chooseDriver('mmsg'))).toEqual(['mmsg', 'io = "mmsg"']);
});

function told(choice: Choice | string): unknown {
  return typeof choice === 'string' ? choice : [choice.driver.capabilities.name, choice.reason];
}
