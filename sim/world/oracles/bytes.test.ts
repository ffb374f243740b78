import { beforeAll, expect, test } from 'vitest';
import { judge, repeated, swapped, type RecordedRun, type Told } from '../history.ts';
import { indexOf, isOutput, mutated, roughRuns, shuffled, withOutput } from '../rough-runs.ts';
import { BYTES } from './bytes.ts';

let runs: RecordedRun[];

beforeAll(async () => {
  runs = await roughRuns(6);
}, 60_000);

test('accepts honest runs, and their independent events in another order', () => {
  for (const run of runs) {
    expect(judge(BYTES, run)).toBeUndefined();
    expect(judge(BYTES, shuffled(run))).toBeUndefined();
  }
});

for (const kind of ['SendToBackend', 'SendToClient'] as const) {
  test(`refuses a ${kind} with one bit changed, or one byte less`, () => {
    for (const change of [flipped, shorter]) {
      const run = mutated(runs, (history) =>
        withOutput(history, kind, (output) =>
          output.payload.length === 0 ? undefined : { ...output, payload: change(output.payload) },
        ),
      );
      expect(judge(BYTES, run)?.property).toBe('bytes pass a proxy unchanged and in order');
    }
  });

  test(`refuses a ${kind} that comes twice`, () => {
    const run = mutated(runs, (history) => {
      const index = indexOf(history, (told) => isOutput(told, kind));
      return index === undefined ? undefined : repeated(history, index);
    });
    expect(judge(BYTES, run)?.property).toBe('a datagram passes a proxy at most once');
  });
}

test('refuses a queue that goes out in another order', () => {
  const run = mutated(runs, (history) => {
    const index = indexOf(history, isOffer(history));
    return index === undefined ? undefined : swapped(history, index, index + 1);
  });
  expect(judge(BYTES, run)?.property).toBe('bytes pass a proxy unchanged and in order');
});

/** Whether it is the first of two different datagrams that waited for the same socket. */
function isOffer(history: readonly Told[]): (told: Told) => boolean {
  return (told) => {
    const at = history.indexOf(told);
    const [before, after] = [history[at - 1], history[at + 1]];
    if (before?.kind !== 'DataInput' || !before.fact.input.kind.endsWith('Writable')) return false;
    const [one, other] = [payloadOf(told), payloadOf(after)];
    return one !== undefined && other !== undefined && one !== other;
  };
}

function payloadOf(told: Told | undefined): string | undefined {
  if (told?.kind !== 'DataOutput' || !('payload' in told.fact.output)) return undefined;
  return told.fact.output.payload.join();
}

function flipped(payload: Uint8Array): Uint8Array {
  const other = payload.slice();
  other[other.length - 1] = (other.at(-1) ?? 0) ^ 1;
  return other;
}

function shorter(payload: Uint8Array): Uint8Array {
  return payload.slice(1);
}
