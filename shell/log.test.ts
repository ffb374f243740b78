import { closeSync, existsSync, openSync } from 'node:fs';
import { beforeEach, describe, expect, test } from 'vitest';
import { createLog, LogLimiter } from './log.ts';

let clock: number;
let limiter: LogLimiter;

beforeEach(() => {
  clock = 50;
  limiter = new LogLimiter(() => clock);
});

describe('the log limiter', () => {
  test('lets the first of its kind through, whatever the clock says', () => {
    expect(limiter.admit('EMFILE')).toBe(0);
  });

  test('is then silent for ten seconds, and says how often', () => {
    limiter.admit('EMFILE');
    for (const at of [50, 5_000, 10_049]) {
      clock = at;
      expect(limiter.admit('EMFILE')).toBeUndefined();
    }
    clock = 10_050;
    expect(limiter.admit('EMFILE')).toBe(3);
    clock = 20_050;
    expect(limiter.admit('EMFILE')).toBe(0);
  });

  test('limits each reason by itself', () => {
    limiter.admit('EMFILE');
    expect(limiter.admit('EADDRNOTAVAIL')).toBe(0);
    expect(limiter.admit('EMFILE')).toBeUndefined();
  });
});

test('a log writes at the level that was asked for', () => {
  expect(createLog('error').isLevelEnabled('warn')).toBe(false);
  expect(createLog('debug').isLevelEnabled('debug')).toBe(true);
});

test.skipIf(!existsSync('/dev/full'))('a log that cannot be written stops nothing', () => {
  const full = openSync('/dev/full', 'w');
  const log = createLog('info', full);
  for (let line = 0; line < 2_000; line += 1) expect(() => log.info('no room')).not.toThrow();
  closeSync(full);
});
