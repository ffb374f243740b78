/** The access log's lines as they are written, to targets good and bad. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  createReadStream,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { parseAddress, seconds, type Address, type Report } from '../core/index.ts';
import { present } from '../core/assert.ts';
import { AccessLog } from './access-log.ts';

test('a line is one line of JSON with nothing that a terminal obeys, whatever the names', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'grapheme-composite' }), async (name) => {
      const { log, file } = opened();
      log.hear({
        ...ENDED,
        cluster: name,
        backend: { ...ENDED.backend, id: `${HOSTILE}${name}` },
      });
      await log.close();
      const text = readFileSync(file, 'utf8');
      expect(text).not.toMatch(/[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}](?!$)/u);
      expect(text.endsWith('\n')).toBe(true);
      const line: unknown = JSON.parse(text);
      expect(line).toMatchObject({ cluster: name, reason: 'backend_lost' });
    }),
    { numRuns: 100 },
  );
});

test('what is not known of a flow is left out', async () => {
  const { log, file } = opened();
  const bytes = { requestBytes: undefined, responseBytes: undefined, generation: undefined };
  log.hear({ ...ENDED, ...bytes });
  await log.close();
  expect(readFileSync(file, 'utf8')).not.toMatch(/bytes|generation|"local"|"lost"/);
});

test('ends that no line told of are told at last', async () => {
  const { log, file } = opened();
  log.hear({ kind: 'FlowEndsSuppressed', suppressed: 7 });
  await log.close();
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({
    time: expect.any(String),
    suppressed: 7,
  });
});

test('a target that cannot be opened throws, and the old one stays', async () => {
  const { log, file } = opened();
  expect(() => log.configure('/nowhere/at/all')).toThrow('ENOENT');
  log.hear(ENDED);
  await log.close();
  expect(readFileSync(file, 'utf8')).toContain('"flow":"0.1"');
});

test('a folder that is gone at SIGUSR1 leaves the old file in use', async () => {
  const folder = temporaryFolder();
  const file = join(folder, 'access.log');
  const log = new AccessLog(SILENT);
  log.configure(file);
  log.hear(ENDED);
  rmSync(folder, { recursive: true });
  expect(() => log.reopen()).not.toThrow();
  log.hear(ENDED);
  await log.close();
});

test.skipIf(!existsSync('/dev/full'))('a full disk stops nothing, and can be closed', async () => {
  const log = new AccessLog(SILENT);
  log.configure('/dev/full');
  for (let line = 0; line < 5_000; line += 1) log.hear(ENDED);
  await log.close();
});

test('a reader that stands still holds nobody, and lines that found no room are counted', async () => {
  const fifo = join(temporaryFolder(), 'fifo');
  execFileSync('mkfifo', [fifo]);
  // For both directions, so that neither open waits for the other.
  const reader = createReadStream(fifo, { flags: 'r+', encoding: 'utf8' });
  await once(reader, 'open');
  const log = new AccessLog(SILENT);
  log.configure(fifo);
  const lines = 10_000;
  for (let line = 0; line < lines; line += 1) log.hear({ ...ENDED, suppressed: 2 });
  let text = '';
  await new Promise<void>((resolve) => {
    reader.on('data', (chunk) => {
      const before = text.length;
      text += String(chunk);
      // Half of what waited has left: there is room for a line that tells.
      if (before < 500_000 && text.length >= 500_000) log.hear(ENDED);
      if (/"lost".*\n/.test(text)) resolve();
    });
  });
  const whole = text.split('\n').filter((line) => line.endsWith('}'));
  const last: unknown = JSON.parse(whole.at(-1)!);
  const lost = lines - (whole.length - 1);
  expect(lost).toBeGreaterThan(0);
  expect(last).toMatchObject({ lost, suppressed: 2 * lost });
  await log.close();
  reader.destroy();
});

test('a reader that goes away ends the log, and nothing else', async () => {
  const fifo = join(temporaryFolder(), 'fifo');
  execFileSync('mkfifo', [fifo]);
  const reader = openSync(fifo, 'r+');
  const log = new AccessLog(SILENT);
  log.configure(fifo);
  log.hear(ENDED);
  closeSync(reader);
  for (let line = 0; line < 10; line += 1) {
    log.hear(ENDED);
    await new Promise(setImmediate);
  }
  await log.close();
});

test('a pipe that nobody reads is refused, and holds nobody up', async () => {
  const fifo = join(temporaryFolder(), 'fifo');
  execFileSync('mkfifo', [fifo]);
  const log = new AccessLog(SILENT);
  expect(() => log.configure(fifo)).toThrow('ENXIO');
  const reader = openSync(fifo, 'r+');
  log.configure(fifo);
  closeSync(reader);
  log.reopen();
  log.hear(ENDED);
  await log.close();
});

const HOSTILE = '\u001b]0;title\u0007\u009b31m\u202e\u2028';

const SILENT = pino({ level: 'silent' });

const ENDED: Extract<Report, { kind: 'FlowEnded' }> = {
  kind: 'FlowEnded',
  flow: '0.1',
  listener: address('192.0.2.1:53'),
  cluster: 'c',
  client: address('198.51.100.7:4000'),
  local: undefined,
  backend: { id: 'b', address: address('10.0.0.1:53'), weight: 100, backup: false },
  reason: 'BackendLost',
  requests: 1,
  responses: 2,
  requestBytes: 3,
  responseBytes: 4,
  duration: seconds(5),
  generation: 6,
  suppressed: 0,
};

function address(text: string): Address {
  return present(parseAddress(text), 'it is an address');
}

function opened(): { log: AccessLog; file: string } {
  const file = join(temporaryFolder(), 'access.log');
  const log = new AccessLog(SILENT);
  log.configure(file);
  return { log, file };
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sozu-udp-access-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
