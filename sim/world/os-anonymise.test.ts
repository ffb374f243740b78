/** Anonymised traces of a whole proxy on a troubled simulated host. */
import { expect, test } from 'vitest';
import type { ControlPlane } from '../../core/control-plane.ts';
import type { DataPlane } from '../../core/data-plane.ts';
import { snapshotProxy } from '../../core/proxy-snapshot.ts';
import { decodeTrace, entriesOf, type Trace } from '../../core/trace.ts';
import { anonymiseTrace, type Anonymised } from '../../core/trace-anonymise.ts';
import { replayTrace } from '../../core/trace-replay.ts';
import { RecordedWorld } from '../../test/recorded-world.ts';

const snapshotOf = (data: DataPlane, control: ControlPlane): Uint8Array =>
  snapshotProxy({ data, control }, { payloads: 'lengths' });

for (const [what, options] of [
  ['from its start', {}],
  ['from snapshots', { segmentBytes: 25_000, snapshotOf }],
] as const) {
  test(`a trace ${what} is replayed under other addresses, and names nobody`, () => {
    const trace = decoded(new RecordedWorld({ seed: 2, ...options }).live(1_000).trace());
    const result = anonymised(trace);
    const bytes = join(result.blocks);
    const other = decoded(bytes);
    const { difference, inputs } = replayTrace(other);
    expect(difference).toBeUndefined();
    const count = trace.segments.reduce((sum, segment) => sum + segment.count, 0);
    expect(inputs).toBeGreaterThan(count / 2);
    expect(result.alike).toBeGreaterThan(count / 4);
    expect(other.header).toMatchObject({ configuration: '', plane: { tableSeed: SEED } });
    const text = JSON.stringify([other.segments.map((segment) => [...entriesOf(segment)])]);
    expect(text).not.toContain('"b0"');
    expect(other.segments.every(({ start }) => start.snapshot === undefined)).toBe(true);
  });
}

test('a trace from its start goes the same way under its own addresses', () => {
  const trace = decoded(new RecordedWorld({ seed: 2 }).live().trace());
  const count = trace.segments[0]?.count;
  const { alike, leftOut } = anonymiseTrace(trace, { flip: () => false, tableSeed: SEED });
  expect([alike, leftOut]).toEqual([count, 0]);
});

const SEED = { first: 9, second: 9 };

function anonymised(trace: Trace): Anonymised {
  // Loopback addresses stay as they are, so what follows their prefix is of no matter here.
  return anonymiseTrace(trace, { flip: (prefix) => prefix.length % 3 === 0, tableSeed: SEED });
}

function decoded(bytes: Uint8Array): Trace {
  const result = decodeTrace(bytes);
  if (!result.ok) throw new Error(`${result.problem} at ${result.offset}`);
  return result.trace;
}

function join(blocks: Iterable<Uint8Array>): Uint8Array {
  return Uint8Array.from([...blocks].flatMap((block) => [...block]));
}
