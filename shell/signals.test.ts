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

test('once told to be quiet it does nothing, and a signal still does not kill', () => {
  const { calls, signal } = listen();
  quiet();
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    expect(signal(name)).toBeGreaterThan(0);
  }
  expect(calls).toEqual([]);
});

/** Calls the listeners that were added, not the signal itself: the test runner listens too. `signal` counts them. */
function listen(): { calls: string[]; signal: (name: 'SIGTERM' | 'SIGINT') => number } {
  const before = { SIGTERM: process.listeners('SIGTERM'), SIGINT: process.listeners('SIGINT') };
  const calls: string[] = [];
  quiet = stopOnSignals(
    { drain: () => calls.push('drain'), stop: () => calls.push('stop') },
    (name, hard) => calls.push(`told ${name} ${hard ? 'hard' : 'soft'}`),
  );
  const signal = (name: 'SIGTERM' | 'SIGINT'): number => {
    const added = process.listeners(name).filter((listener) => !before[name].includes(listener));
    for (const listener of added) listener(name);
    return added.length;
  };
  return { calls, signal };
}
