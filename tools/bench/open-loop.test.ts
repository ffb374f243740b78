import { expect, test } from 'vitest';
import { OpenLoop } from './open-loop.ts';

/** 1,000 datagrams a second over two flows for 10 ms; `clock.now` is the time at which replies come. */
function loop(part: { first?: number; count?: number } = {}) {
  const sent: { readonly flow: number; readonly payload: Uint8Array }[] = [];
  // The bytes are read when they leave, so what is kept here is a copy.
  const sender = {
    send: (flow: number, payload: Uint8Array) => void sent.push({ flow, payload: payload.slice() }),
  };
  const clock = { now: 0 };
  const open = new OpenLoop(
    sender,
    { flows: 2, window: 1, bytes: 64 },
    { now: 0, lengthMs: 10, rate: 1_000, mark: 7, clock: () => clock.now, ...part },
  );
  return { sent, open, clock };
}

test('what is due leaves, on one flow after the other, whatever comes back', () => {
  const { sent, open } = loop();
  open.tick(0.5);
  expect(sent).toEqual([]);
  open.tick(3.2);
  expect(sent.map(({ flow }) => flow)).toEqual([0, 1, 0]);
  open.tick(100);
  expect(open.sent).toBe(10);
});

test('a part of the flows may be loaded alone', () => {
  const { sent, open } = loop({ first: 5, count: 2 });
  open.tick(3.2);
  expect(sent.map(({ flow }) => flow)).toEqual([5, 6, 5]);
});

test('the time of a datagram goes from when it left to when it is back', () => {
  const { sent, open, clock } = loop();
  open.tick(1);
  open.tick(2);
  clock.now = 5;
  for (const { flow, payload } of sent) open.reply(flow, payload);
  expect(open.received).toBe(2);
  expect([open.latency(0), open.latency(1)]).toEqual([3_000, 4_000]);
});

test('a slice is over when all is back, or nothing came for long', () => {
  const { sent, open, clock } = loop();
  expect(open.tick(10)).toBe(false);
  clock.now = 11;
  for (const { flow, payload } of sent.slice(1)) open.reply(flow, payload);
  expect(open.tick(1_000)).toBe(false);
  expect(open.tick(1_012)).toBe(true);
  expect(open.sent - open.received).toBe(1);
});

test('nothing back is no time at all', () => {
  expect(loop().open.latency(0.5)).toBeNaN();
});
