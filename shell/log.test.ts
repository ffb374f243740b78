import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { createLog, LogLimiter, openLog } from './log.ts';

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

test('a log in a file is appended to, and goes on in a new file after it was moved away', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sozu-udp-log-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'proxy.log');
  writeFileSync(file, 'older\n');
  const { log, reopen } = openLog({ logLevel: 'info', logTarget: file });
  log.info('first');
  renameSync(file, `${file}.1`);
  log.info('second');
  reopen();
  log.info('third');
  expect(readFileSync(`${file}.1`, 'utf8')).toMatch(/^older\n.*first.*\n.*second.*\n$/);
  expect(readFileSync(file, 'utf8')).toMatch(/^.*third.*\n$/);
  rmSync(folder, { recursive: true });
  reopen();
  log.info('nobody reads this, and nothing fails');
  mkdirSync(folder);
});

test('a log file that cannot be opened is an error at the start', () => {
  const logTarget = join(tmpdir(), 'sozu-udp-no-such-folder', 'proxy.log');
  expect(() => openLog({ logLevel: 'info', logTarget })).toThrow('ENOENT');
});
