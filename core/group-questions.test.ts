/** Questions about flows that are in several data planes: one answer, and names that tell every flow from every other. */
import { expect, test } from 'vitest';
import { GroupBench } from '../test/group-bench.ts';
import { addressOf, clusterSettings, configOf } from '../test/plane-bench.ts';
import { LISTENERS_MAX, requestId } from './brand.ts';
import type { Report } from './directives.ts';
import type { FlowCursor, FlowLine, FlowQuery } from './flow-commands.ts';
import { PlaneGroup } from './plane-group.ts';

const ADDRESS = addressOf('10.0.0.53:53');
const BACKEND = addressOf('10.0.0.1:53');
const COUNT = 3;

test('a list has the flows of all planes, under names of their own, up to its limit', () => {
  const bench = withFlows();
  const all = listed(bench, { kind: 'ListFlows', filter: {}, limit: 100 });
  expect(all).toMatchObject({ matched: 10, next: undefined });
  expect(all.names).toHaveLength(10);
  expect(new Set(all.names).size).toBe(10);
  const few = listed(bench, { kind: 'ListFlows', filter: {}, limit: 5 });
  expect(few).toEqual({ names: all.names.slice(0, 5), matched: 10, next: undefined });
});

test('a list in parts is the same list, however small the parts', () => {
  for (const slots of [1, 2, 3, 100]) {
    const bench = withFlows();
    const { names } = listed(bench, { kind: 'ListFlows', filter: {}, limit: 100 });
    const parts: string[] = [];
    let from: FlowCursor | undefined;
    let matched = 0;
    for (let part = 0; part === 0 || from !== undefined; part += 1) {
      expect(part).toBeLessThan(40);
      const one = listed(bench, { kind: 'ListFlows', filter: {}, limit: 100, slots, from });
      parts.push(...one.names);
      matched += one.matched;
      from = one.next;
    }
    expect(parts).toEqual(names);
    expect(matched).toBe(10);
  }
});

test('a list from a place beyond all planes is empty', () => {
  const bench = withFlows();
  const from = { listener: 9 * LISTENERS_MAX, slot: 0 };
  const list = listed(bench, { kind: 'ListFlows', filter: {}, limit: 9, from });
  expect(list).toEqual({ names: [], matched: 0, next: undefined });
});

test('each flow is shown, and killed, by the name that lists give it', () => {
  const bench = withFlows();
  const all = linesOf(bench, { kind: 'ListFlows', filter: {}, limit: 100 });
  for (const line of all) {
    const shown = bench.ask({ kind: 'ShowFlow', flow: line.name });
    expect(shown).toMatchObject({ ok: true, answer: { kind: 'Flow', flow: line } });
    const before = bench.flowCount;
    const killed = bench.ask({ kind: 'KillFlow', flow: line.name });
    expect(killed).toMatchObject({ changed: true, answer: { kind: 'Killed', flow: line } });
    expect(bench.flowCount).toBe(before - 1);
    const message = `there is no live flow "${line.name}"`;
    const error = { kind: 'NotFound', message };
    expect(bench.ask({ kind: 'ShowFlow', flow: line.name })).toEqual({ ok: false, error });
  }
});

test('what is no name of a flow is not found under the words of whoever asked', () => {
  const bench = withFlows();
  for (const flow of ['nonsense', '0.999999', '999.1', '0.9999999999999999']) {
    const error = { kind: 'NotFound', message: `there is no live flow "${flow}"` };
    expect(bench.ask({ kind: 'KillFlow', flow })).toEqual({ ok: false, error });
  }
});

test('why a client goes where it goes: its flow is found in whichever plane has it', () => {
  const bench = withFlows();
  for (const line of linesOf(bench, { kind: 'ListFlows', filter: {}, limit: 100 })) {
    const reply = bench.ask({ kind: 'Why', listener: ADDRESS, client: line.client });
    expect(reply).toMatchObject({ ok: true, answer: { kind: 'Why', pinned: { flow: line } } });
  }
  const stranger = addressOf('10.9.0.9:9');
  const reply = bench.ask({ kind: 'Why', listener: ADDRESS, client: stranger });
  expect(reply).toMatchObject({ ok: true, answer: { kind: 'Why', pinned: undefined } });
  const elsewhere = bench.ask({ kind: 'Why', listener: BACKEND, client: stranger });
  expect(elsewhere).toMatchObject({ ok: false, error: { kind: 'NotFound' } });
});

test('a dry run knows the flows of all planes', () => {
  const told: Report[] = [];
  const group = new PlaneGroup(2, {
    direct: () => undefined,
    report: (report) => void told.push(report),
    endTurn: () => undefined,
  });
  const request = requestId(7);
  const directive = { kind: 'Query', request, query: { kind: 'CountFlows' } } as const;
  group.direct({ generation: 1, directive });
  const of = (flows: number, backend = BACKEND) => ({
    listener: ADDRESS,
    cluster: 'c',
    backend,
    flows,
  });
  answered(1, [of(2), of(1, ADDRESS)]);
  expect(told).toEqual([]);
  answered(0, [of(3)]);
  const answer = { kind: 'FlowCounts', counts: [of(5), of(1, ADDRESS)] };
  expect(told).toEqual([{ kind: 'Answered', request, answer }]);

  function answered(plane: number, counts: ReturnType<typeof of>[]): void {
    group.heard(plane, { kind: 'Answered', request, answer: { kind: 'FlowCounts', counts } });
  }
});

test('an access log names flows as lists do', () => {
  const bench = withFlows({ oneIn: 1, linesPerSecond: 1_000 });
  const { names } = listed(bench, { kind: 'ListFlows', filter: {}, limit: 100 });
  bench.command({ kind: 'HardStop' });
  bench.settle();
  const ended = bench.told.flatMap((one) => (one.kind === 'FlowEnded' ? [one.flow] : []));
  expect(ended.toSorted()).toEqual(names.toSorted());
});

/** Ten clients, by turns on three planes. */
function withFlows(accessLog?: {
  readonly oneIn: number;
  readonly linesPerSecond: number;
}): GroupBench {
  const bench = new GroupBench(COUNT);
  bench.configure({ ...configOf([clusterSettings({ loadBalancing: 'HRW' })]), accessLog });
  bench.settle();
  for (let client = 0; client < 10; client += 1) bench.send(client);
  bench.pass(0.001);
  bench.settle();
  return bench;
}

function linesOf(
  bench: GroupBench,
  query: Exclude<FlowQuery, { kind: 'CountFlows' }>,
): readonly FlowLine[] {
  const reply = bench.ask(query);
  return reply.ok && reply.answer?.kind === 'Flows' ? reply.answer.flows : [];
}

function listed(
  bench: GroupBench,
  query: Extract<FlowQuery, { kind: 'ListFlows' }>,
): { readonly names: string[]; readonly matched: number; readonly next: FlowCursor | undefined } {
  const reply = bench.ask(query);
  if (!reply.ok || reply.answer?.kind !== 'Flows') throw new Error('a list is always given');
  const { flows, matched, next } = reply.answer;
  return { names: flows.map(({ name }) => name), matched, next };
}
