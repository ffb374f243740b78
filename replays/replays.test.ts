import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { decodeReplay } from '../sim/core-harness/replay-decode.ts';
import { encodeReplay, verifyReplay } from '../sim/core-harness/replay.ts';

const FILES = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.json'));

test('there are replays', () => {
  expect(FILES.length).toBeGreaterThan(0);
});

describe.each(FILES)('%s', (file) => {
  const text = readFileSync(join(import.meta.dirname, file), 'utf8');
  const decoding = decodeReplay(text);

  test('can be read, and is written as the encoder writes it', () => {
    expect(decoding).toMatchObject({ ok: true, replay: { name: file.replace(/\.json$/, '') } });
    if (decoding.ok) expect(encodeReplay(decoding.replay)).toBe(text);
  });

  test.runIf(decoding.ok)('does what it is marked with', () => {
    if (decoding.ok) {
      expect(verifyReplay(decoding.replay)).toEqual({ kind: decoding.replay.outcome });
    }
  });
});
