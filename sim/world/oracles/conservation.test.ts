import { beforeAll, expect, test } from 'vitest';
import type { ListenerCounters } from '../../../core/metrics.ts';
import { judge, repeated, replaced, without, type History, type Told } from '../history.ts';
import { indexOf, mutated, roughRuns, shuffled } from '../rough-runs.ts';
import type { RecordedRun } from '../history.ts';
import { CONSERVATION } from './conservation.ts';

let runs: RecordedRun[];

beforeAll(async () => {
  runs = await roughRuns(5);
}, 60_000);

test('accepts honest runs, and their independent events in another order', () => {
  for (const run of runs) {
    expect(judge(CONSERVATION, run)).toBeUndefined();
    expect(judge(CONSERVATION, shuffled(run))).toBeUndefined();
  }
});

const LOST: readonly (readonly [string, (told: Told) => boolean, string])[] = [
  [
    'a datagram that a plane was told of',
    ({ kind, fact }) => kind === 'DataInput' && fact.input.kind === 'ClientArrived',
    'a proxy counts what its plane was told',
  ],
  [
    'a datagram that a plane sent',
    ({ kind, fact }) => kind === 'DataOutput' && fact.output.kind === 'SendToBackend',
    'a proxy counts what its plane sent and did not get back',
  ],
  [
    'a send that failed',
    ({ kind, fact }) => kind === 'DataInput' && fact.input.kind === 'SendFailed',
    'a proxy counts what its plane sent and did not get back',
  ],
  [
    'a packet that a party sent',
    ({ kind, fact }) => kind === 'Packet' && fact.kind === 'sent' && !fact.packet.raw,
    'a packet arrives or is lost as often as there is of it',
  ],
  ['what a client heard', ({ kind }) => kind === 'ClientHeard', ''],
  ['what a client sent', ({ kind }) => kind === 'ClientSent', ''],
  ['what a backend heard', ({ kind }) => kind === 'BackendHeard', ''],
  ['what a backend sent', ({ kind }) => kind === 'BackendSent', ''],
];

for (const [what, is, property] of LOST) {
  const wanted = property === '' ? 'parties and network count the same datagrams' : property;
  test(`refuses a run without ${what}`, () => {
    const run = mutated(runs, (history) => {
      const index = indexOf(history, is);
      return index === undefined ? undefined : without(history, index);
    });
    expect(judge(CONSERVATION, run)?.property).toBe(wanted);
  });
}

test('refuses a packet that arrives twice', () => {
  const run = mutated(runs, (history) => {
    const index = indexOf(
      history,
      ({ kind, fact }) => kind === 'Packet' && fact.kind === 'delivered',
    );
    return index === undefined ? undefined : repeated(history, index);
  });
  expect(judge(CONSERVATION, run)?.property).toBe(
    'a packet arrives or is lost as often as there is of it',
  );
});

test('refuses counters that are one off, whichever it is', () => {
  const keys = [
    'forwarded',
    'clientReceived',
    'droppedInvalid',
    'sendFailedLate',
    'upstreamOpenFailed',
  ] as const;
  for (const key of keys) {
    const run = mutated(runs, (history) => withCount(history, key));
    expect(judge(CONSERVATION, run), key).toBeDefined();
  }
});

test('refuses a kernel that lost a datagram without a word', () => {
  const run = mutated(runs, (history) => {
    const index = indexOf(
      history,
      ({ kind, fact }) => kind === 'Counted' && fact.kernelIn.received > 0,
    );
    const told = index === undefined ? undefined : history[index];
    if (index === undefined || told?.kind !== 'Counted') return undefined;
    const kernelIn = { ...told.fact.kernelIn, abandoned: told.fact.kernelIn.abandoned + 1 };
    return replaced(history, index, { ...told, fact: { ...told.fact, kernelIn } });
  });
  expect(judge(CONSERVATION, run)?.property).toBe(
    'what a kernel received it handed over, lost or still has',
  );
});

function withCount(history: History, key: keyof ListenerCounters): History | undefined {
  const index = indexOf(history, ({ kind }) => kind === 'Counted');
  const told = index === undefined ? undefined : history[index];
  if (index === undefined || told?.kind !== 'Counted') return undefined;
  const counters = { ...told.fact.counters, [key]: told.fact.counters[key] + 1 };
  return replaced(history, index, { ...told, fact: { ...told.fact, counters } });
}
