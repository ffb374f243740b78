/** Egress queues: order and bounds under a socket that blocks, fails and recovers. Rows of spec §12.3 keep their names. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { address, bytes } from '../test/flow-rig.ts';
import { DATAGRAM_BYTES_MAX } from './contract.ts';
import {
  EGRESS_MEMORY_MAX,
  EgressMemory,
  EgressQueues,
  ENTRY_OVERHEAD_BYTES,
  FLOW_EGRESS,
  LISTENER_EGRESS,
  type EgressBounds,
  type EgressEntry,
} from './egress-queue.ts';

const SOCKET = 7;

describe('egress queues', () => {
  test('write_queue_push_until_full_then_drops: the newest is dropped, and the bound is named', () => {
    for (const bounds of [FLOW_EGRESS, LISTENER_EGRESS]) {
      const { queues } = rig(bounds);
      for (let n = 0; n < bounds.datagrams; n += 1) {
        expect(queues.push(SOCKET, undefined, bytes(`${n}`))).toBeUndefined();
      }
      expect(queues.push(SOCKET, undefined, bytes('late'))).toBe('datagrams');
      expect(queues.lengthOf(SOCKET)).toBe(bounds.datagrams);
      expect(texts(flush(queues))).toEqual(
        Array.from({ length: bounds.datagrams }, (_, n) => `${n}`),
      );
    }
    expect([FLOW_EGRESS.datagrams, LISTENER_EGRESS.datagrams]).toEqual([64, 256]);
  });

  test('write_queue_drains_in_fifo_order_on_writable', () => {
    const { queues } = rig();
    for (const text of ['a', 'b', 'c']) queues.push(SOCKET, undefined, bytes(text));
    expect(texts(flush(queues))).toEqual(['a', 'b', 'c']);
    expect(queues.has(SOCKET)).toBe(false);
  });

  test('write_queue_stops_on_wouldblock_and_resumes: the front is kept', () => {
    const { queues } = rig();
    for (const text of ['a', 'b', 'c', 'd']) queues.push(SOCKET, undefined, bytes(text));
    expect(texts(flush(queues, 'sent', 'blocked'))).toEqual(['a']);
    expect(queues.lengthOf(SOCKET)).toBe(3);
    expect(texts(flush(queues, 'blocked'))).toEqual([]);
    expect(texts(flush(queues))).toEqual(['b', 'c', 'd']);
  });

  test('write_queue_hard_error_drops_one_and_continues', () => {
    const { queues, memory } = rig();
    for (const text of ['a', 'b', 'c', 'd']) queues.push(SOCKET, undefined, bytes(text));
    expect(texts(flush(queues, 'sent', 'error', 'sent', 'blocked'))).toEqual(['a', 'c']);
    expect(texts(flush(queues))).toEqual(['d']);
    expect(memory.held).toBe(0);
  });

  test('write_queue_empties_cleanly_when_already_empty', () => {
    const { queues } = rig();
    expect(queues.offer(SOCKET)).toBeUndefined();
    queues.settle(() => expect.unreachable('there is no queue'));
    expect(queues.discard(SOCKET)).toBe(0);
    expect([queues.size, queues.waiting]).toEqual([0, 0]);
  });

  test('copies are owned whatever lends them: a slice of a Buffer is no copy', () => {
    const { queues } = rig();
    const lent = Buffer.from('good');
    queues.push(SOCKET, undefined, lent);
    lent.fill('x');
    expect(texts(flush(queues))).toEqual(['good']);
  });

  test('copies are owned: what was lent may be overwritten', () => {
    const { queues } = rig();
    const [header, payload] = [bytes('header'), bytes('payload')];
    queues.push(SOCKET, header, payload);
    header.fill(0xdd);
    payload.fill(0xdd);
    const entry = queues.offer(SOCKET);
    expect(entry?.header).toEqual(bytes('header'));
    expect(entry?.payload).toEqual(bytes('payload'));
  });

  test('the queue of a listener knows to whom each datagram goes, and from which address', () => {
    const { queues } = rig(LISTENER_EGRESS);
    const [dst, from] = [address('192.0.2.1:1000'), address('198.51.100.1:53')];
    queues.push(SOCKET, undefined, bytes('a'), dst, from);
    queues.takeBack(SOCKET, undefined, bytes('b'), dst);
    expect(queues.offer(SOCKET)).toMatchObject({ dst, from });
    expect(queues.offer(SOCKET)).toMatchObject({ dst, from: undefined });
  });

  test('a direct send that blocked is queued; one offered from the queue only keeps its place', () => {
    const { queues } = rig();
    queues.takeBack(SOCKET, undefined, bytes('direct'));
    expect(queues.lengthOf(SOCKET)).toBe(1);
    queues.offer(SOCKET);
    queues.takeBack(SOCKET, undefined, bytes('direct'));
    expect(queues.lengthOf(SOCKET)).toBe(1);
    expect(queues.waiting).toBe(1);
  });

  test('what arrives while others are with the driver queues behind them', () => {
    const { queues } = rig();
    queues.push(SOCKET, undefined, bytes('a'));
    queues.offer(SOCKET);
    queues.push(SOCKET, undefined, bytes('b'));
    queues.takeBack(SOCKET, undefined, bytes('a'));
    expect(settle(queues)).toEqual([SOCKET]);
    expect(texts(flush(queues))).toEqual(['a', 'b']);
  });

  test('a queue goes on, and that is told, when something arrived behind all that was offered and sent', () => {
    const { queues } = rig();
    queues.push(SOCKET, undefined, bytes('a'));
    queues.offer(SOCKET);
    queues.push(SOCKET, undefined, bytes('b'));
    expect(settle(queues)).toEqual([SOCKET]);
    expect(settle(queues), 'told once').toEqual([]);
    expect(texts(flush(queues))).toEqual(['b']);
  });

  test('all that was offered blocked again: the queue goes on as it was, and that is told once', () => {
    const { queues } = rig();
    for (const text of ['a', 'b']) queues.push(SOCKET, undefined, bytes(text));
    for (const text of ['a', 'b']) expect(queues.offer(SOCKET)?.payload).toEqual(bytes(text));
    for (const text of ['a', 'b']) queues.takeBack(SOCKET, undefined, bytes(text));
    expect(settle(queues)).toEqual([SOCKET]);
    expect(texts(flush(queues))).toEqual(['a', 'b']);
  });

  test('a queue that was not offered from is not told of', () => {
    const { queues } = rig();
    queues.push(SOCKET, undefined, bytes('a'));
    expect(settle(queues)).toEqual([]);
  });

  test('bytes are bounded, and the largest datagram fits into an empty queue', () => {
    const { queues } = rig();
    const largest = new Uint8Array(DATAGRAM_BYTES_MAX);
    expect(queues.push(SOCKET, new Uint8Array(52), largest)).toBeUndefined();
    expect(queues.push(SOCKET, new Uint8Array(52), largest)).toBe('bytes');
    expect(queues.push(SOCKET, undefined, bytes('small'))).toBeUndefined();
    expect(queues.push(SOCKET + 1, undefined, largest)).toBeUndefined();
  });

  test('64 full Ethernet frames with a PROXY header fit', () => {
    const { queues } = rig();
    for (let n = 0; n < 64; n += 1) {
      expect(queues.push(SOCKET, new Uint8Array(52), new Uint8Array(1_472))).toBeUndefined();
    }
  });

  test('the memory of all queues together is bounded, empty payloads included', () => {
    const memory = new EgressMemory(3 * ENTRY_OVERHEAD_BYTES);
    const flows = new EgressQueues<number>(FLOW_EGRESS, memory);
    const listeners = new EgressQueues<number>(LISTENER_EGRESS, memory);
    flows.push(1, undefined, new Uint8Array(0));
    flows.push(2, undefined, new Uint8Array(0));
    listeners.push(1, undefined, new Uint8Array(0));
    expect(listeners.push(1, undefined, new Uint8Array(0))).toBe('memory');
    expect(flows.push(3, undefined, new Uint8Array(0))).toBe('memory');
    expect([flows.size, listeners.size]).toEqual([2, 1]);
    flows.discard(1);
    expect(listeners.push(1, undefined, new Uint8Array(0))).toBeUndefined();
    expect(EGRESS_MEMORY_MAX).toBe(67_108_864);
  });

  test('a queue that is refused its first datagram is not made', () => {
    const queues = new EgressQueues<number>(FLOW_EGRESS, new EgressMemory(0));
    expect(queues.push(SOCKET, undefined, bytes('a'))).toBe('memory');
    expect(queues.size).toBe(0);
  });

  test('a socket that closes forgets its queue, and says how many were still waiting', () => {
    const { queues, memory } = rig();
    for (const text of ['a', 'b', 'c']) queues.push(SOCKET, undefined, bytes(text));
    queues.offer(SOCKET);
    expect(queues.discard(SOCKET)).toBe(2);
    expect([queues.size, queues.waiting, memory.held]).toEqual([0, 0, 0]);
    queues.settle(() => expect.unreachable('a discarded queue does not go on'));
  });
});

type Outcome = 'sent' | 'blocked' | 'error';

type Step =
  | { readonly kind: 'send'; readonly key: number; readonly size: number; readonly header: boolean }
  | { readonly kind: 'writable'; readonly key: number; readonly outcomes: readonly Outcome[] }
  | { readonly kind: 'close'; readonly key: number };

test('whatever sockets do: each keeps its order, no bound is passed, no datagram is lost uncounted', () => {
  const key = fc.nat(2);
  const send: fc.Arbitrary<Step> = fc.record({
    kind: fc.constant('send'),
    key,
    size: fc.constantFrom(10, 20, 30),
    header: fc.boolean(),
  });
  const writable: fc.Arbitrary<Step> = fc.record({
    kind: fc.constant('writable'),
    key,
    outcomes: fc.array(fc.constantFrom('sent', 'error', 'blocked'), { maxLength: 4 }),
  });
  const close: fc.Arbitrary<Step> = fc.record({ kind: fc.constant('close'), key });
  // Mostly sends, so that queues are long enough to be cut in the middle.
  const step = fc.oneof(
    { arbitrary: send, weight: 6 },
    { arbitrary: writable, weight: 3 },
    { arbitrary: close, weight: 1 },
  );
  fc.assert(fc.property(fc.array(step, { maxLength: 60 }), runAgainstModel), { numRuns: 500 });
});

/** Naive queues of numbers beside the real ones. */
function runAgainstModel(steps: readonly Step[]): void {
  const bounds = { datagrams: 4, bytes: 60 };
  const memoryMax = 8 * ENTRY_OVERHEAD_BYTES;
  const memory = new EgressMemory(memoryMax);
  const queues = new EgressQueues<number>(bounds, memory);
  const model = new Map<number, { tag: number; size: number }[]>();
  const queueOf = (key: number): { tag: number; size: number }[] => model.get(key) ?? [];
  const sizeOf = (entries: readonly { size: number }[]): number =>
    entries.reduce((sum, { size }) => sum + size, 0);
  for (const [tag, step] of steps.entries()) {
    if (step.kind === 'send') {
      const header = step.header ? new Uint8Array(10) : undefined;
      const entry = { tag, size: step.size + (header?.length ?? 0) };
      const before = [...model.values()].flat();
      const refusal = queues.push(step.key, header, tagged(tag, step.size));
      const held = sizeOf(before) + before.length * ENTRY_OVERHEAD_BYTES;
      if (queueOf(step.key).length === bounds.datagrams) expect(refusal).toBe('datagrams');
      else if (sizeOf(queueOf(step.key)) + entry.size > bounds.bytes) expect(refusal).toBe('bytes');
      else if (held + entry.size + ENTRY_OVERHEAD_BYTES > memoryMax) expect(refusal).toBe('memory');
      else expect(refusal).toBeUndefined();
      if (refusal === undefined) model.set(step.key, [...queueOf(step.key), entry]);
    } else if (step.kind === 'writable') {
      const waiting = queueOf(step.key);
      const blockedAt = step.outcomes.indexOf('blocked');
      const gone = blockedAt < 0 ? waiting.length : Math.min(blockedAt, waiting.length);
      const sent = waiting.slice(0, gone).filter((_, at) => step.outcomes[at] !== 'error');
      expect(flush(queues, ...step.outcomes, step.key).map(tagOf)).toEqual(
        sent.map(({ tag: one }) => one),
      );
      model.set(step.key, waiting.slice(gone));
    } else {
      expect(queues.discard(step.key)).toBe(queueOf(step.key).length);
      model.delete(step.key);
    }
    const all = [...model.values()].flat();
    expect(queues.waiting).toBe(all.length);
    expect(memory.held).toBe(sizeOf(all) + all.length * ENTRY_OVERHEAD_BYTES);
    expect(queues.size).toBe([...model.values()].filter(({ length }) => length > 0).length);
  }
}

function rig(bounds: EgressBounds = FLOW_EGRESS): {
  readonly queues: EgressQueues<number>;
  readonly memory: EgressMemory;
} {
  const memory = new EgressMemory();
  return { queues: new EgressQueues<number>(bounds, memory), memory };
}

/**
 * One writable socket through a flush, as a driver does it: everything is offered, and what the socket answers comes back in
 * order. After the first `blocked` all are; without an answer a datagram is sent. Returns what was sent.
 */
function flush(
  queues: EgressQueues<number>,
  ...answers: readonly (Outcome | number)[]
): EgressEntry[] {
  const key = answers.find((answer) => typeof answer === 'number') ?? SOCKET;
  const outcomes = answers.filter((answer) => typeof answer === 'string');
  const offered: EgressEntry[] = [];
  for (let entry = queues.offer(key); entry !== undefined; entry = queues.offer(key)) {
    offered.push(entry);
  }
  const blockedAt = outcomes.indexOf('blocked');
  const reached = blockedAt < 0 ? offered.length : Math.min(blockedAt, offered.length);
  for (const { header, payload, dst, from } of offered.slice(reached)) {
    expect(queues.takeBack(key, header, payload, dst, from)).toBeUndefined();
  }
  expect(settle(queues)).toEqual(reached < offered.length ? [key] : []);
  expect(queues.has(key)).toBe(reached < offered.length);
  return offered.slice(0, reached).filter((_, at) => outcomes[at] !== 'error');
}

/** The keys of the queues that go on. */
function settle(queues: EgressQueues<number>): number[] {
  const left: number[] = [];
  queues.settle((key) => left.push(key));
  return left;
}

function texts(entries: readonly EgressEntry[]): string[] {
  return entries.map(({ payload }) => new TextDecoder().decode(payload));
}

function tagged(tag: number, size: number): Uint8Array {
  const payload = new Uint8Array(size);
  payload[0] = tag;
  return payload;
}

function tagOf({ payload }: EgressEntry): number {
  return payload[0]!;
}
