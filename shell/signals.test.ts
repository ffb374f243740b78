import { afterEach, expect, test } from 'vitest';
import { stopOnSignals } from './signals.ts';

let quiet: () => void = () => undefined;

afterEach(() => {
  quiet();
});

test('the first signal asks for a soft stop, the second for a hard one, whichever they are', () => {
  const { calls, signal } = listen();
  signal('SIGTERM');
  expect(calls).toEqual(['told SIGTERM soft', 'drain']);
  signal('SIGINT');
  expect(calls.slice(2)).toEqual(['told SIGINT hard', 'stop']);
  signal('SIGINT');
  expect(calls.slice(4)).toEqual(['told SIGINT hard', 'stop']);
});

test('nothing listens any more once it was told to be quiet', () => {
  const before = process.listenerCount('SIGTERM') + process.listenerCount('SIGINT');
  listen();
  quiet();
  expect(process.listenerCount('SIGTERM') + process.listenerCount('SIGINT')).toBe(before);
});

/** Calls the listeners that were added, not the signal itself: the test runner listens too. */
function listen(): { calls: string[]; signal: (name: 'SIGTERM' | 'SIGINT') => void } {
  const before = { SIGTERM: process.listeners('SIGTERM'), SIGINT: process.listeners('SIGINT') };
  const calls: string[] = [];
  quiet = stopOnSignals(
    { drain: () => calls.push('drain'), stop: () => calls.push('stop') },
    (name, hard) => calls.push(`told ${name} ${hard ? 'hard' : 'soft'}`),
  );
  const signal = (name: 'SIGTERM' | 'SIGINT'): void => {
    for (const listener of process.listeners(name)) {
      if (!before[name].includes(listener)) listener(name);
    }
  };
  return { calls, signal };
}
