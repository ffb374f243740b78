import { beforeAll, expect, test } from 'vitest';
import { judge, replaced, type History, type RecordedRun } from '../history.ts';
import { mutated, roughRuns, shuffled } from '../rough-runs.ts';
import { AMPLIFICATION } from './amplification.ts';

let runs: RecordedRun[];

beforeAll(async () => {
  runs = await roughRuns(5);
}, 60_000);

test('accepts honest runs, and their independent events in another order', () => {
  for (const run of runs) {
    expect(judge(AMPLIFICATION, run)).toBeUndefined();
    expect(judge(AMPLIFICATION, shuffled(run))).toBeUndefined();
  }
});

test('refuses replies beyond the limits, by one byte and by one datagram', () => {
  const objections = runs.flatMap((run) =>
    [61, 30].map((bytes) => judge(AMPLIFICATION, { ...run, history: swollen(run.history, bytes) })),
  );
  const properties = objections.map((objection) => objection?.property);
  expect(properties).toContain('reply bytes to a client that spoke once are within its budget');
});

test('says how much too much it was', () => {
  const run = mutated(runs, (history) => {
    const fat = swollen(history, 5_000);
    return judge(AMPLIFICATION, { spec: specOf(history), history: fat }) && fat;
  });
  expect(judge(AMPLIFICATION, run)?.detail).toMatch(/^5000 against \d+: /);
});

/** Every reply is of so many bytes. */
function swollen(history: History, bytes: number): History {
  const payload = new Uint8Array(bytes);
  let changed = history;
  for (const [index, told] of history.entries()) {
    if (told.kind === 'DataInput' && told.fact.input.kind === 'BackendArrived') {
      const input = { ...told.fact.input, payload };
      changed = replaced(changed, index, { ...told, fact: { ...told.fact, input } });
    } else if (told.kind === 'DataOutput' && told.fact.output.kind === 'SendToClient') {
      const output = { ...told.fact.output, payload };
      changed = replaced(changed, index, { ...told, fact: { ...told.fact, output } });
    }
  }
  return changed;
}

function specOf(history: History): RecordedRun['spec'] {
  const run = runs.find((one) => one.history === history);
  if (run === undefined) throw new Error('it is one of the runs');
  return run.spec;
}
