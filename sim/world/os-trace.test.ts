/** Traces of a whole proxy on a troubled simulated host: recorded, encoded, decoded and replayed. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { present } from '../../core/assert.ts';
import type { ControlPlane } from '../../core/control-plane.ts';
import type { DataPlane } from '../../core/data-plane.ts';
import { snapshotProxy } from '../../core/proxy-snapshot.ts';
import { decodeTrace, entriesOf, type Trace, type TraceSegment } from '../../core/trace.ts';
import { replayTrace, type ReplayOptions } from '../../core/trace-replay.ts';
import { plant, PLANTED_BUGS } from '../../test/planted-bugs.ts';
import { RecordedWorld } from '../../test/recorded-world.ts';

const OFF_BY_ONE = present(
  PLANTED_BUGS.find(({ name }) => name === 'one-response-too-many'),
  'it is among them',
);

const cache = join(import.meta.dirname, '../../.cache');
let directory: string;

beforeAll(() => {
  mkdirSync(cache, { recursive: true });
  directory = mkdtempSync(join(cache, 'trace-'));
});

afterAll(() => rmSync(directory, { recursive: true }));

describe('a trace of a proxy on a troubled host', () => {
  for (let seed = 0; seed < 4; seed += 1) {
    test(`replays to the recorded outputs at every input: seed ${seed}`, () => {
      const world = new RecordedWorld({ seed }).live();
      const trace = decoded(world.trace());
      const [segment] = trace.segments;
      expect(segment?.count).toBeGreaterThan(3_000);
      const { difference, failure, inputs } = replayTrace(trace);
      expect([difference, failure, inputs]).toEqual([undefined, undefined, segment?.count]);
      expect(world.recorder.missed).toBe(0);
    });
  }

  test('holds every kind of input, and fewer than 32 bytes for each of them', () => {
    const kinds = new Set<string>();
    let [bytes, count] = [0, 0];
    for (let seed = 0; seed < 4; seed += 1) {
      const trace = decoded(new RecordedWorld({ seed }).live().trace());
      const segment = present(trace.segments[0], 'there is one');
      bytes += segment.records.length;
      count += segment.count;
      for (const { step } of entriesOf(segment)) kinds.add(`${step.machine} ${step.input.kind}`);
    }
    expect([...kinds].sort()).toEqual([
      'control Command',
      'control NextReport',
      'control ProbeAnswered',
      'control Timeout',
      'data BackendArrived',
      'data ClientArrived',
      'data Flushed',
      'data LateSendFailure',
      'data ListenerAnswer',
      'data ListenerWritable',
      'data NextDirective',
      'data OpenFailed',
      'data Refused',
      'data SendFailed',
      'data Timeout',
      'data UpstreamWritable',
    ]);
    expect(bytes / count).toBeLessThan(32);
  });

  for (let seed = 0; seed < 8; seed += 1) {
    test(`goes on from snapshots, which know of payloads only the length: seed ${seed}`, () => {
      const snapshotOf = (data: DataPlane, control: ControlPlane): Uint8Array =>
        snapshotProxy({ data, control }, { payloads: 'lengths' });
      const world = new RecordedWorld({ seed, segmentBytes: 25_000, snapshotOf });
      for (const until of [300, 450, 700, 1_000, 1_150, 3_000]) {
        world.live(until);
        const trace = decoded(world.trace());
        expect(replayTrace(trace)).toMatchObject({ difference: undefined, failure: undefined });
        if (until > 500) expect(trace.segments.map(isNew)).toEqual([false, false]);
      }
      expect(world.recorder.missed).toBe(0);
    });
  }

  test('names the very input that a build with a bug takes otherwise', async () => {
    plant(OFF_BY_ONE, directory);
    const buggy: { DataPlane: typeof DataPlane } = await import(
      join(directory, 'core/data-plane.ts')
    );
    const trace = decoded(new RecordedWorld().live().trace());
    const data: ReplayOptions['data'] = (options) => new buggy.DataPlane(options);
    const { difference } = replayTrace(trace, { data });
    const found = present(difference, 'the bug shows');
    expect(found.kind).toBe('outputs');
    expect(found.entry.step.input.kind).toBe('BackendArrived');
    expect(found.outputs.map(({ kind }) => kind)).toEqual(['SendToClient']);
    const [right, wrong] = [outputsOf(trace, {}), outputsOf(trace, { data })];
    const first = right.findIndex((outputs, index) => outputs !== wrong[index]);
    expect(found.entry.number).toBe(first + 1);
    expect(right[first]).toContain('CloseUpstream');
  });
});

function isNew({ start }: TraceSegment): boolean {
  return start.snapshot === undefined;
}

/** What each input brought, as text, as far as the replay went. */
function outputsOf(trace: Trace, options: ReplayOptions): string[] {
  const all: string[] = [];
  const { difference } = replayTrace(trace, {
    ...options,
    onEntry: (_, { outputs }) => all.push(JSON.stringify(outputs)),
  });
  if (difference !== undefined) all.push(JSON.stringify(difference.outputs));
  return all;
}

function decoded(bytes: Uint8Array): Trace {
  const result = decodeTrace(bytes);
  if (!result.ok) throw new Error(`${result.problem} at ${result.offset}`);
  return result.trace;
}
