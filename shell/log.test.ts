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
import * as fc from 'fast-check';
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

  test('lets reasons beyond its room share one line, until older ones have been silent', () => {
    const small = new LogLimiter(() => clock, 2);
    expect([small.admit('a'), small.admit('b'), small.admit('c')]).toEqual([0, 0, 0]);
    expect([small.admit('d'), small.admit('e'), small.admit('a')]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    clock += 10_000;
    // `a` makes way, and what it left untold is told with `d` and `e`.
    expect([small.admit('f'), small.admit('b'), small.admit('g')]).toEqual([0, 0, 3]);
  });

  test('makes room at the one that has been silent longest, not at the one that came first', () => {
    const small = new LogLimiter(() => clock, 2);
    const admitAt = (at: number, reason: string): number | undefined => {
      clock = at;
      return small.admit(reason);
    };
    expect([admitAt(0, 'a'), admitAt(5_000, 'b'), admitAt(10_000, 'a')]).toEqual([0, 0, 0]);
    // `c` has the place of `b`, and `d` the line that all others share.
    expect([admitAt(15_000, 'c'), admitAt(15_000, 'd')]).toEqual([0, 0]);
  });

  test('counts every line once, told or suppressed, for any reasons and times', () => {
    const steps = fc.array(
      fc.tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 6_000 })),
      { maxLength: 80 },
    );
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 4 }), (reasons, room) => {
        let now = 0;
        const small = new LogLimiter(() => now, room);
        let [asked, accounted] = [0, 0];
        const admit = (reason: string): void => {
          asked += 1;
          const suppressed = small.admit(reason);
          if (suppressed !== undefined) accounted += 1 + suppressed;
        };
        for (const [reason, pause] of reasons) {
          now += pause;
          admit(`${reason}`);
          expect(accounted).toBeLessThanOrEqual(asked);
        }
        now += 10_000;
        // Fresh reasons push out all others, and the one too many tells what those had left.
        for (let fresh = 0; fresh <= room; fresh += 1) admit(`fresh ${fresh}`);
        expect(accounted).toBe(asked);
      }),
    );
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

test('a line has nothing that a terminal obeys, and says the same', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sozu-udp-log-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'log');
  const cluster = '\u001b[31m\u009b2J\u202ec\u2028';
  openLog({ logLevel: 'info', logTarget: file }).log.info({ cluster }, 'cluster\u0085recovered');
  const text = readFileSync(file, 'utf8');
  expect(text).not.toMatch(/[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}](?!$)/u);
  expect(JSON.parse(text)).toMatchObject({ cluster, msg: 'cluster\u0085recovered' });
});
