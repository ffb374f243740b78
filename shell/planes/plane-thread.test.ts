import { EventEmitter } from 'node:events';
import { beforeEach, expect, test, vi } from 'vitest';
import { AssertionError, DataPlane, figuresOf, PLACEMENT_SEED } from '../../core/index.ts';
import { NO_TRAINS } from './host.ts';
import type { FromWorker, ToWorker } from './messages.ts';
import { PlaneThread } from './plane-thread.ts';

const threads = vi.hoisted((): { made: EventEmitter[]; told: unknown[] } => ({
  made: [],
  told: [],
}));

vi.mock('node:worker_threads', () => ({
  Worker: class extends EventEmitter {
    constructor() {
      super();
      threads.made.push(this);
    }

    postMessage(message: ToWorker): void {
      threads.told.push(message);
    }
  },
}));

const OPTIONS = {
  placementSeed: PLACEMENT_SEED,
  tableSeed: { first: 1, second: 2 },
  randomSeed: { high: 3, low: 4 },
};

const figures = { plane: figuresOf(new DataPlane(OPTIONS)), trains: NO_TRAINS };
let thread: PlaneThread;
let failures: unknown[];

beforeEach(() => {
  threads.made.length = 0;
  threads.told.length = 0;
  failures = [];
  const nothing = (): void => undefined;
  const failing = (...failure: unknown[]): void => void failures.push(failure);
  const hooks = { heard: nothing, done: nothing, recordingStopped: nothing, failing };
  const setup = { options: OPTIONS, sharing: {}, clockStart: 0, recorder: undefined };
  thread = new PlaneThread(setup, figures, hooks);
});

test('a turn that is directed after the end keeps nobody waiting', () => {
  stop();
  expect(thread.done).toBeLessThan(thread.directed);
  say({ kind: 'Ended', figures });
  expect(thread.done).toBe(thread.directed);
  stop();
  expect(thread.done).toBe(thread.directed);
  expect(threads.told).toHaveLength(2);
});

test('a trace is all of its blocks, and none is a failure: the end takes the rest with it', async () => {
  const [whole, broken] = [thread.trace('request', ''), thread.trace('request', '')];
  const block = new Uint8Array([1]);
  for (const request of [1, 2]) say({ kind: 'Trace', request, block });
  say({ kind: 'Trace', request: 1, block: undefined });
  say({ kind: 'Ended', figures });
  expect(await whole).toEqual([block]);
  await expect(broken).rejects.toThrow('has ended');
  await expect(thread.trace('request', '')).rejects.toThrow('has ended');
});

test('a bug in it is one of this thread, and only what was recorded is told of', () => {
  const bug = { kind: 'Failing', message: 'a claim', stack: 'there', isAssertion: true } as const;
  expect(() => say({ ...bug, trace: undefined })).toThrow(AssertionError);
  expect(failures).toEqual([]);
  expect(() => say({ ...bug, trace: 'a file', isAssertion: false })).toThrow('a claim');
  expect(failures).toEqual([['a claim', 'a file']]);
});

function stop(): void {
  thread.direct({ generation: 1, directive: { kind: 'Stop' } });
  thread.endTurn();
}

function say(message: FromWorker): void {
  for (const worker of threads.made) worker.emit('message', message);
}
