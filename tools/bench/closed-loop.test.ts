import { expect, test } from 'vitest';
import { ClosedLoop } from './closed-loop.ts';

const MARK = 0x0102;

/** A closed loop from time 0 on, and what it sent: flow numbers with the bytes. */
function loop(options: { flows: number; active?: number; window: number; inBursts?: boolean }) {
  const sent: { readonly flow: number; readonly payload: Uint8Array }[] = [];
  const sender = { send: (flow: number, payload: Uint8Array) => void sent.push({ flow, payload }) };
  const load = { bytes: 64, ...options };
  return {
    sent,
    flowsOf: () => sent.map(({ flow }) => flow),
    closed: new ClosedLoop(sender, load, { now: 0, lengthMs: 500, mark: MARK }),
    touch: new ClosedLoop(sender, load, { now: 0, lengthMs: 500, mark: MARK, isTouch: true }),
  };
}

test('each active flow starts with its window, spread over all flows', () => {
  const { closed, flowsOf } = loop({ flows: 10, active: 2, window: 3 });
  expect(closed.tick(2)).toBe(false);
  expect(flowsOf()).toEqual([0, 0, 0, 5, 5, 5]);
});

test('what comes back is a trip and leaves again, the very bytes', () => {
  const { closed, sent } = loop({ flows: 1, window: 2 });
  closed.tick(2);
  const payload = new Uint8Array([2, 1, 9]);
  closed.reply(0, payload);
  expect(closed.trips).toBe(1);
  expect(sent).toHaveLength(3);
  expect(sent[2]?.payload).toBe(payload);
});

test('a straggler of another slice is neither counted nor sent again', () => {
  const { closed, sent } = loop({ flows: 1, window: 1 });
  closed.tick(2);
  closed.reply(0, new Uint8Array([1, 1]));
  expect(closed.trips).toBe(0);
  expect(sent).toHaveLength(1);
});

test('a slice ends when everything is back, and nothing leaves after its time', () => {
  const { closed, sent } = loop({ flows: 1, window: 1 });
  closed.tick(2);
  expect(closed.tick(501)).toBe(false);
  closed.reply(0, sent[0]?.payload ?? new Uint8Array());
  expect(sent).toHaveLength(1);
  expect(closed.tick(502)).toBe(true);
  expect(closed).toMatchObject({ trips: 1, lost: 0, silent: 0 });
});

test('what is not back long after the end is lost', () => {
  const { closed } = loop({ flows: 2, window: 1 });
  closed.tick(2);
  expect(closed.tick(501)).toBe(false);
  expect(closed.tick(752)).toBe(true);
  expect(closed).toMatchObject({ trips: 0, lost: 2, silent: 2 });
});

test('a flow whose datagrams are overdue starts anew, and they are lost', () => {
  const { closed, sent } = loop({ flows: 1, window: 2 });
  closed.tick(2);
  closed.tick(200);
  expect(sent).toHaveLength(2);
  closed.tick(260);
  expect(sent).toHaveLength(4);
  expect(closed.lost).toBe(2);
});

test('a burst leaves when the one before is back', () => {
  const { closed, sent } = loop({ flows: 1, window: 3, inBursts: true });
  closed.tick(2);
  const payload = sent[0]?.payload ?? new Uint8Array();
  closed.reply(0, payload);
  closed.reply(0, payload);
  expect(sent).toHaveLength(3);
  closed.reply(0, payload);
  expect(sent).toHaveLength(6);
});

test('a touch sends once on each flow and is over when all have had an answer', () => {
  const { touch, sent } = loop({ flows: 3, window: 1 });
  touch.tick(2);
  expect(sent).toHaveLength(3);
  for (const { flow, payload } of sent.slice()) touch.reply(flow, payload);
  expect(sent).toHaveLength(3);
  expect(touch.tick(4)).toBe(true);
  expect(touch.silent).toBe(0);
});

test('what the kernel did not take is not waited for', () => {
  const { closed } = loop({ flows: 1, window: 1 });
  closed.tick(2);
  closed.unsent(0);
  expect(closed.tick(501)).toBe(true);
  expect(closed.lost).toBe(0);
});
