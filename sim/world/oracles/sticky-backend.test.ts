import { beforeAll, expect, test } from 'vitest';
import { socketId } from '../../../core/brand.ts';
import { backendAddress } from '../builders.ts';
import { judge, without, type History, type RecordedRun } from '../history.ts';
import { indexOf, isOutput, mutated, roughRuns, shuffled, withOutput } from '../rough-runs.ts';
import { STICKY_BACKEND } from './sticky-backend.ts';

let runs: RecordedRun[];

beforeAll(async () => {
  runs = await roughRuns(14);
}, 60_000);

test('accepts honest runs, and their independent events in another order', () => {
  for (const run of runs) {
    expect(judge(STICKY_BACKEND, run)).toBeUndefined();
    expect(judge(STICKY_BACKEND, shuffled(run))).toBeUndefined();
  }
});

test('refuses a datagram on the socket of another flow', () => {
  const run = mutated(runs, (history) =>
    withOutput(history, 'SendToBackend', (output, index) => {
      const other = socketBefore(history, index, output.socket);
      return other === undefined ? undefined : { ...output, socket: other };
    }),
  );
  expect(judge(STICKY_BACKEND, run)?.property).toBe(
    'a client datagram leaves on the socket of its flow',
  );
});

test('refuses a live flow that gets another backend for no reason', () => {
  const run = mutated(runs, (history) => {
    for (let at = 0; at < history.length; at++) {
      const before = history[at - 1];
      const told = history[at];
      const isKnown =
        isOutput(told, 'SendToBackend') &&
        before?.kind === 'DataInput' &&
        before.fact.input.kind === 'ClientArrived';
      if (!isKnown || told?.kind !== 'DataOutput' || told.fact.output.kind !== 'SendToBackend')
        continue;
      const socket = socketId(999_999, before.fact.input.listener);
      const { process } = told.fact;
      const about = { backend: backendAddress(9), source: undefined };
      const open = { kind: 'OpenUpstream', socket, ...about } as const;
      const send = { ...told.fact.output, socket };
      return history.toSpliced(
        at,
        1,
        { ...told, fact: { process, plane: 0, output: open } },
        { ...told, fact: { process, plane: 0, output: send } },
      );
    }
    return undefined;
  });
  expect(judge(STICKY_BACKEND, run)?.property).toBe(
    'a live flow stays on a backend that it may keep',
  );
});

test('refuses a flow that moves although its backend was never lost', () => {
  const isNews = ({ kind, fact }: History[number]): boolean =>
    kind === 'DataInput' &&
    fact.input.kind === 'Directed' &&
    ['SetBackendState', 'SetHealth', 'SetCluster'].includes(fact.input.message.directive.kind);
  const objections = runs.map((run) => {
    let { history } = run;
    // The first two clusters are those of the beginning.
    for (let skipped = 0, at = indexOf(history, isNews); at !== undefined;) {
      const from = skipped < 2 ? at + 1 : at;
      if (skipped >= 2) history = without(history, at);
      skipped += 1;
      at = indexOf(history, isNews, from);
    }
    return judge(STICKY_BACKEND, { ...run, history })?.property;
  });
  expect(objections).toContain('a live flow stays on a backend that it may keep');
});

test('refuses a new socket that leads elsewhere', () => {
  const renewal = indexOfRenewal();
  const run = mutated(renewal === undefined ? [] : [renewal], (history) => history);
  expect(judge(STICKY_BACKEND, run)?.property).toBe(
    'a live flow stays on a backend that it may keep',
  );
});

/** A run in which a flow has its socket renewed, to another backend. */
function indexOfRenewal(): RecordedRun | undefined {
  for (const run of runs) {
    const { history } = run;
    for (let at = 1; at < history.length; at++) {
      const told = history[at];
      const before = history[at - 1];
      if (told?.kind !== 'DataInput' || told.fact.input.kind !== 'ClientArrived') continue;
      const open = history[at + 1];
      const send = history[at + 2];
      if (open?.kind !== 'DataOutput' || open.fact.output.kind !== 'OpenUpstream') continue;
      if (!isOutput(send, 'SendToBackend') || before === undefined) continue;
      const { socket } = open.fact.output;
      const { process } = open.fact;
      const failure = {
        direction: 'to-backend',
        cause: 'error',
        socket,
        errno: 'ENETUNREACH',
      } as const;
      const renewed = socketId(999_999, told.fact.input.listener);
      const about = { backend: backendAddress(9), source: undefined };
      const added: History = [
        {
          kind: 'DataInput',
          fact: { process, plane: 0, input: { kind: 'SendFailed', failure }, now: told.fact.now },
          at: told.at,
        },
        { ...open, fact: { process, plane: 0, output: { kind: 'CloseUpstream', socket } } },
        {
          ...open,
          fact: { process, plane: 0, output: { kind: 'OpenUpstream', socket: renewed, ...about } },
        },
      ];
      return { ...run, history: [...history.slice(0, at + 3), ...added] };
    }
  }
  return undefined;
}

function socketBefore(
  history: History,
  index: number,
  socket: number,
): ReturnType<typeof socketId> | undefined {
  for (let at = index - 1; at > 0; at--) {
    const told = history[at];
    if (told?.kind !== 'DataOutput' || told.fact.output.kind !== 'SendToBackend') continue;
    if (told.fact.output.socket !== socket) return told.fact.output.socket;
  }
  return undefined;
}
