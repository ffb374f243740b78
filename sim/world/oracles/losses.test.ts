import { beforeAll, expect, test } from 'vitest';
import type { ListenerCounters } from '../../../core/metrics.ts';
import { judge, replaced, without, type History, type RecordedRun, type Told } from '../history.ts';
import { indexOf, isOutput, mutated, roughRuns, shuffled } from '../rough-runs.ts';
import { LOSSES } from './losses.ts';

let runs: RecordedRun[];

beforeAll(async () => {
  runs = await roughRuns(16);
}, 60_000);

test('accepts honest runs, and their independent events in another order', () => {
  for (const run of runs) {
    expect(judge(LOSSES, run)).toBeUndefined();
    expect(judge(LOSSES, shuffled(run))).toBeUndefined();
  }
});

test('refuses a forward that does not happen, and a reply', () => {
  for (const kind of ['SendToBackend', 'SendToClient'] as const) {
    const run = mutated(runs, (history) => {
      const index = indexOf(history, (told) => isOutput(told, kind));
      return index === undefined ? undefined : without(history, index);
    });
    expect(judge(LOSSES, run)?.property).toBe('nothing is lost in a proxy without a cause');
  }
});

test('refuses one reason in place of another, whichever two', () => {
  const reasons = [
    'droppedInvalid',
    'droppedTruncated',
    'droppedNoBackend',
    'droppedShed',
    'droppedUnknownFlow',
    'droppedSendError',
    'droppedTooBig',
    'droppedClosed',
    'droppedDenied',
    'droppedAmplification',
  ] as const;
  for (const [at, one] of reasons.entries()) {
    const other = reasons[(at + 1) % reasons.length] ?? one;
    const objections = runs.flatMap((run) => {
      const history = exchanged(run.history, one, other);
      return history === undefined ? [] : [judge(LOSSES, { ...run, history })?.property];
    });
    // Where a rate or a lack of sockets may have been the cause instead, nobody can tell.
    expect(objections, one).toContain('a lost datagram is counted for the cause of its loss');
  }
});

test('refuses what goes on although it is too long', () => {
  const run = mutated(runs, (history) => {
    const index = indexOf(
      history,
      (told) => isOutput(told, 'SendToBackend'),
      indexOf(history, isFresh(history)),
    );
    const told = index === undefined ? undefined : history[index - 1];
    if (index === undefined || told?.kind !== 'DataInput') return undefined;
    const { input } = told.fact;
    const output = history[index];
    if (input.kind !== 'ClientArrived' || output?.kind !== 'DataOutput') return undefined;
    const payload = new Uint8Array(2_000);
    const longer = replaced(history, index - 1, {
      ...told,
      fact: { ...told.fact, input: { ...input, payload } },
    });
    const { fact } = output;
    if (fact.output.kind !== 'SendToBackend') return undefined;
    return replaced(longer, index, {
      ...output,
      fact: { ...fact, output: { ...fact.output, payload } },
    });
  });
  expect(judge(LOSSES, run)).toMatchObject({
    property: 'what must be dropped does not go on',
    detail: 'a datagram went on that counts as droppedTruncated',
  });
});

/** Whether it is a client datagram that goes on with the next fact. */
function isFresh(history: History): (told: Told) => boolean {
  return (told) =>
    told.kind === 'DataInput' &&
    told.fact.input.kind === 'ClientArrived' &&
    isOutput(history[history.indexOf(told) + 1], 'SendToBackend');
}

/** The last count that has any of `one`, with one of them counted as `other`. */
function exchanged(
  history: History,
  one: keyof ListenerCounters,
  other: keyof ListenerCounters,
): History | undefined {
  const index = history.findLastIndex(
    ({ kind, fact }) => kind === 'Counted' && fact.counters[one] > 0,
  );
  const told = history[index];
  if (told?.kind !== 'Counted') return undefined;
  const { counters } = told.fact;
  const wrong = { ...counters, [one]: counters[one] - 1, [other]: counters[other] + 1 };
  return replaced(history, index, { ...told, fact: { ...told.fact, counters: wrong } });
}
