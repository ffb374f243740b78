import { beforeAll, expect, test } from 'vitest';
import type { Command } from '../../../core/commands.ts';
import { judge, replaced, type History, type RecordedRun } from '../history.ts';
import { roughRuns, shuffled, withOutput } from '../rough-runs.ts';
import { CLOSED_BACKENDS } from './closed-backends.ts';

const CLOSED = 'a new flow goes to no backend that is closing or gone';

let runs: RecordedRun[];

beforeAll(async () => {
  runs = await roughRuns(6);
}, 60_000);

test('accepts honest runs, and their independent events in another order', () => {
  for (const run of runs) {
    expect(judge(CLOSED_BACKENDS, run)).toBeUndefined();
    expect(judge(CLOSED_BACKENDS, shuffled(run))).toBeUndefined();
  }
});

test('refuses a flow to a backend that nobody configured', () => {
  for (const run of runs) {
    const history =
      withOutput(run.history, 'OpenUpstream', (output) => {
        const { backend } = output;
        return { ...output, backend: { ...backend, port: backend.port + 1 } };
      }) ?? [];
    expect(judge(CLOSED_BACKENDS, { ...run, history })?.property).toBe(CLOSED);
  }
});

for (const kind of ['DrainBackend', 'DisableBackend', 'RemoveBackend'] as const) {
  test(`refuses a data plane that hears nothing of ${kind}`, () => {
    const objections = runs.map((run) => judge(CLOSED_BACKENDS, deaf(run, kind))?.property);
    expect(objections).toContain(CLOSED);
  });
}

/** As if each backend that comes back had been closed in that way: what follows are flows to a closed one. */
function deaf(
  run: RecordedRun,
  kind: 'DrainBackend' | 'DisableBackend' | 'RemoveBackend',
): RecordedRun {
  let { history }: { history: History } = run;
  for (const [index, told] of history.entries()) {
    if (told.kind !== 'ControlInput' || told.fact.input.kind !== 'Command') continue;
    const { command } = told.fact.input;
    if (command.kind !== 'UndrainBackend') continue;
    const { cluster, address } = command;
    const other: Command = { kind, cluster, address };
    const input = { ...told.fact.input, command: other };
    history = replaced(history, index, { ...told, fact: { ...told.fact, input } });
  }
  return { ...run, history };
}
