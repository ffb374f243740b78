import { availableParallelism } from 'node:os';
import { expect, test } from 'vitest';
import { skip } from '../../test/e2e/peers.ts';
import { loadLibc } from '../drivers/libc.ts';
import { choose, whatIsMissing, type Wanted } from './choose.ts';

const NONE = 'koffi does not load: Error: not there';
const wanted = (io: Wanted['io'], workers: Wanted['workers'] = 1): Wanted => {
  return { io, workers, steer: 'tuple' };
};

test('takes node:dgram when told to, and looks no further', () => {
  const reason = 'io = "dgram"';
  expect(choose(wanted('dgram'))).toMatchObject({ driver: 'dgram', workers: 1, reason });
});

test('falls back to node:dgram, which has one worker, by itself only, and says why', () => {
  const reason = `no mmsg: ${NONE}`;
  expect(choose(wanted('auto', 4), NONE)).toMatchObject({ driver: 'dgram', workers: 1, reason });
  expect(choose(wanted('mmsg'), NONE)).toBe(NONE);
});

test('takes mmsg where it can be had, with as many workers as are wanted', (context) => {
  if (typeof loadLibc() === 'string') return skip(context, 'mmsg cannot be had here');
  const found = { driver: 'mmsg', workers: 3, reason: 'it can be had here' };
  expect(choose(wanted('auto', 3))).toMatchObject(found);
  const workers = availableParallelism();
  return expect(choose(wanted('mmsg', 'auto'))).toMatchObject({ workers, reason: 'io = "mmsg"' });
});

test.for([
  ['recvmmsg', 'recvmmsg'],
  ['sendmmsg', 'sendmmsg'],
  ['send', 'send'],
  ['epollWait', 'epoll_wait'],
] as const)('a sandbox without %s leaves no mmsg', ([method, call], context) => {
  const libc = loadLibc();
  if (typeof libc === 'string') return skip(context, 'mmsg cannot be had here');
  const eperm = -1;
  return expect(whatIsMissing({ ...libc, [method]: () => eperm })).toBe(`${call} answers EPERM`);
});
