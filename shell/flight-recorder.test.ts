import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DataPlane, decodeTrace, instant, type DataMachine } from '../core/index.ts';
import { FlightRecorder } from './flight-recorder.ts';

const PLANE = {
  placementSeed: { high: 1, low: 2 },
  tableSeed: { first: 3, second: 4 },
  randomSeed: { high: 5, low: 6 },
};
const CONTROL = { randomSeed: { high: 7, low: 8 } };

let folder: string;
let hasMemory: boolean;
/** Why, each time that recording stopped. */
let stops: string[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sozu-udp-recorder-'));
  hasMemory = true;
  stops = [];
});

afterEach(() => {
  chmodSync(folder, 0o700);
  rmSync(folder, { recursive: true });
});

for (const how of ['dump', 'dumpNow'] as const) {
  describe(`a trace that ${how} writes`, () => {
    test('is whole, for its owner alone, and tells who wrote it and why', async () => {
      const { flight, plane } = recording();
      flight.configuration = () => 'as written';
      turns(plane, 1, 5);
      const file = await flight[how]('assertion');
      expect(readdirSync(folder)).toEqual([file.slice(folder.length + 1)]);
      expect(statSync(file).mode & 0o777).toBe(0o600);
      expect(decodeTrace(readFileSync(file))).toMatchObject({
        ok: true,
        trace: {
          header: {
            reason: 'assertion',
            configuration: 'as written',
            runtime: process.version,
            build: expect.stringMatching(/^\d+\.\d+\.\d+/),
            plane: PLANE,
            control: CONTROL,
          },
          truncated: false,
          segments: [{ count: 10 }],
        },
      });
    });

    test('is one of sixteen at most in its folder, those that broke off among them', async () => {
      const { flight } = recording();
      for (let n = 0; n < 15; n += 1) {
        writeFileSync(join(folder, `sozu-udp-${n}.trace${n < 8 ? '.part' : ''}`), '');
      }
      await flight[how]('request');
      const again = async (): Promise<string> => flight[how]('request');
      await expect(again()).rejects.toThrow(`${folder} has 16 traces`);
      expect(readdirSync(folder)).toHaveLength(16);
    });

    test('is not written where there is no folder', async () => {
      const { flight } = recording(join(folder, 'absent'));
      await expect((async () => flight[how]('request'))()).rejects.toThrow('ENOENT');
    });
  });
}

describe('a trace on request', () => {
  test('is the same for all who ask while it is written', async () => {
    const { flight } = recording();
    const [one, other] = await Promise.all([flight.dump('request'), flight.dump('request')]);
    expect(other).toBe(one);
    expect(await flight.dump('request')).not.toBe(one);
  });

  test('ends where it was asked for, whatever comes while it is written', async () => {
    const { flight, plane } = recording();
    turns(plane, 1, 1_000);
    const writing = flight.dump('request');
    turns(plane, 1_001, 9_000);
    const result = decodeTrace(readFileSync(await writing));
    expect(result.ok && result.trace.segments.map(({ count }) => count)).toEqual([2_000]);
  });
});

describe('a recorder', () => {
  test('begins a segment with a snapshot when one is full', async () => {
    const { flight, plane } = recording();
    turns(plane, 1, 60_000);
    const result = decodeTrace(readFileSync(await flight.dump('request')));
    const starts = result.ok && result.trace.segments.map(({ start }) => start.snapshot);
    expect(starts).toEqual([Uint8Array.of(1), Uint8Array.of(1)]);
    expect([stops, flight.recorder.missed]).toEqual([[], 0]);
  });

  test('stops, and says so once, while there is no memory for a snapshot', () => {
    const { flight, plane } = recording();
    hasMemory = false;
    turns(plane, 1, 20_000);
    expect(stops).toEqual(['Array buffer allocation failed']);
    expect(flight.recorder.missed).toBeGreaterThan(0);
    hasMemory = true;
    const { missed } = flight.recorder;
    turns(plane, 20_001, 25_000);
    expect(flight.recorder.missed).toBeLessThan(missed + 5_000);
  });

  test('lets no other error of a snapshot pass', () => {
    const { plane } = recording(folder, () => {
      throw new TypeError('planted');
    });
    expect(() => turns(plane, 1, 20_000)).toThrow('planted');
  });
});

function recording(
  where = folder,
  snapshot = (): Uint8Array => Uint8Array.of(1),
): { flight: FlightRecorder; plane: DataMachine } {
  const flight = new FlightRecorder(
    { segmentBytes: 200_000, folder: where },
    {
      plane: PLANE,
      control: CONTROL,
      snapshot: () => {
        if (hasMemory) return snapshot();
        throw new RangeError('Array buffer allocation failed');
      },
      flows: () => 100,
      stopped: ({ message }) => stops.push(message),
    },
  );
  return { flight, plane: flight.recorder.tapData(new DataPlane(PLANE)) };
}

/** Two inputs in each. */
function turns(plane: DataMachine, from: number, to: number): void {
  for (let at = from; at <= to; at += 1) {
    plane.handleTimeout(instant(at));
    while (plane.pollOutput() !== undefined);
    plane.handleInput({ kind: 'Flushed' }, instant(at));
    while (plane.pollOutput() !== undefined);
    plane.pollTimeout();
  }
}
