import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { decodeReplay } from '../sim/core-harness/replay-decode.ts';
import { encodeReplay, verifyReplay } from '../sim/core-harness/replay.ts';
import {
  decodeWorldReplay,
  encodeWorldReplay,
  isWorldReplay,
  verifyWorldReplay,
} from '../sim/world/world-replay.ts';

const FILES = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.json'));

test('there are replays', () => {
  expect(FILES.length).toBeGreaterThan(0);
});

const text = (file: string): string => readFileSync(join(import.meta.dirname, file), 'utf8');
const ofWorlds = FILES.filter((file) => isWorldReplay(text(file)));
const ofTheMachine = FILES.filter((file) => !ofWorlds.includes(file));

describe.each(ofWorlds)('%s', (file) => {
  const decoding = decodeWorldReplay(text(file));

  test('can be read, and is written as the encoder writes it', () => {
    expect(decoding).toMatchObject({ ok: true, replay: { name: file.replace(/\.json$/, '') } });
    if (decoding.ok) expect(encodeWorldReplay(decoding.replay)).toBe(text(file));
  });

  test.runIf(decoding.ok)('does what it is marked with', () => {
    if (decoding.ok) {
      expect(verifyWorldReplay(decoding.replay)).toEqual({ kind: decoding.replay.outcome });
    }
  });
});

describe.each(ofTheMachine)('%s', (file) => {
  const decoding = decodeReplay(text(file));

  test('can be read, and is written as the encoder writes it', () => {
    expect(decoding).toMatchObject({ ok: true, replay: { name: file.replace(/\.json$/, '') } });
    if (decoding.ok) expect(encodeReplay(decoding.replay)).toBe(text(file));
  });

  test.runIf(decoding.ok)('does what it is marked with', () => {
    if (decoding.ok) {
      expect(verifyReplay(decoding.replay)).toEqual({ kind: decoding.replay.outcome });
    }
  });
});
