import { beforeAll, describe, expect, test } from 'vitest';
import { DNS_BURST } from '../../scenarios/world/dns-burst.ts';
import { present } from '../../core/assert.ts';
import { milliseconds } from '../../core/time.ts';
import { seededStreams } from '../random.ts';
import { seedFromNumber } from '../seed.ts';
import {
  delayed,
  judge,
  recordRun,
  reordered,
  repeated,
  replaced,
  swapped,
  without,
  type History,
  type RecordedRun,
} from './history.ts';
import { CONSERVATION } from './oracles/conservation.ts';
import { POISON } from './os.ts';

let run: RecordedRun;

beforeAll(async () => {
  run = await recordRun(DNS_BURST, seedFromNumber(1));
});

describe('a recorded run', () => {
  test('holds every kind of fact that a run without faults has, in the order of time', () => {
    const kinds = new Set(run.history.map(({ kind }) => kind));
    expect(kinds).toContain('DataInput');
    expect(kinds).toContain('Packet');
    expect(kinds).toContain('Exited');
    const times = run.history.map(({ at }) => at);
    expect(times).toEqual(times.toSorted((one, other) => one - other));
  });

  test('owns the bytes that were lent', () => {
    const first = run.history.find(
      ({ kind, fact }) => kind === 'DataInput' && fact.input.kind === 'ClientArrived',
    );
    expect(first?.kind === 'DataInput' && first.fact.input.kind).toBe('ClientArrived');
    if (first?.kind !== 'DataInput' || first.fact.input.kind !== 'ClientArrived') return;
    expect(first.fact.input.payload).not.toContain(POISON);
  });

  test('is judged as the run was', () => {
    expect(judge(CONSERVATION, run)).toBeUndefined();
  });

  test('is objected to with a property and what was seen', () => {
    const index = run.history.findLastIndex(({ kind }) => kind === 'Counted');
    const last = present(run.history[index], 'somebody counted');
    if (last.kind !== 'Counted') throw new Error('it is a count');
    const counters = { ...last.fact.counters, droppedShed: last.fact.counters.droppedShed + 1 };
    const history = replaced(run.history, index, { ...last, fact: { ...last.fact, counters } });
    const objection = judge(CONSERVATION, { ...run, history });
    expect(objection?.property).toBe('every datagram ends exactly once');
    expect(objection?.detail).toContain('-1');
  });
});

describe('a mutator', () => {
  test('takes out, repeats and exchanges what it is told to', () => {
    const { history } = run;
    const [a, b, c] = history;
    expect(without(history, 1).slice(0, 2)).toEqual([a, c]);
    expect(repeated(history, 1).slice(0, 4)).toEqual([a, b, b, c]);
    const exchanged = swapped(history, 0, history.length - 1);
    expect(exchanged[0]?.kind).toBe(history.at(-1)?.kind);
    expect(exchanged[0]?.at).toBe(a?.at);
    expect(exchanged.at(-1)?.fact).toBe(a?.fact);
  });

  test('delays a fact past all that happened until then', () => {
    const index = run.history.findIndex(({ kind }) => kind === 'BackendHeard');
    const late = present(run.history[index], 'a backend heard something');
    const history = delayed(run.history, index, milliseconds(10));
    const place = history.findIndex(({ fact }) => fact === late.fact);
    expect(place).toBeGreaterThan(index);
    expect(history[place]?.at).toBe(late.at + 10_000);
    expectOrdered(history);
  });

  test('reorders neighbours, and nothing of one host or one packet', () => {
    const { values } = seededStreams(seedFromNumber(5));
    const history = reordered(run, values);
    expect(history).not.toEqual(run.history);
    expectOrdered(history);
    expect(packetsOf(history)).toEqual(packetsOf(run.history));
    expect(inputsOf(history)).toEqual(inputsOf(run.history));
  });
});

function expectOrdered(history: History): void {
  const times = history.map(({ at }) => at);
  expect(times).toEqual(times.toSorted((one, other) => one - other));
}

/** The fates of each packet, in their order. */
function packetsOf(history: History): Map<number, string[]> {
  const fates = new Map<number, string[]>();
  for (const { kind, fact } of history) {
    if (kind !== 'Packet') continue;
    const { serial } = fact.packet;
    fates.set(serial, [...(fates.get(serial) ?? []), fact.kind]);
  }
  return new Map([...fates].toSorted(([one], [other]) => one - other));
}

function inputsOf(history: History): unknown[] {
  return history.filter(({ kind }) => kind === 'DataInput').map(({ fact }) => fact);
}
