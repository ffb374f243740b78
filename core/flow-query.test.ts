/** What operators ask of live flows, through both planes: lists, one flow, its end, and reasons for a selection. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ControlBench } from '../test/control-bench.ts';
import {
  addressOf,
  backendsOf,
  clusterSettings,
  configOf,
  listenerConfig,
} from '../test/plane-bench.ts';
import { untilOver } from '../test/until-over.ts';
import { formatAddress } from './address.ts';
import { listenerId } from './brand.ts';
import { parseCidr, type Cidr } from './cidr.ts';
import type { Answer, Command } from './commands.ts';
import { NO_SOURCE_RATES, type ClusterSettings, type LoadBalancing } from './config.ts';
import {
  FLOWS_LISTED_MAX,
  type FlowCursor,
  type FlowFilter,
  type FlowLine,
} from './flow-commands.ts';
import { PLACEMENT_SEED } from './hash.ts';
import { affinityKey } from './placement.ts';
import { instant, seconds } from './time.ts';

const SECOND = addressOf('10.0.0.54:53');
const V6 = addressOf('[2001:db8::53]:53');

describe('ListFlows', () => {
  test('gives every live flow a line, and a name of its own', () => {
    const bench = started();
    ask(bench, '10.1.0.1:1');
    bench.ports.clock = instant(2_000_000);
    ask(bench, '10.1.0.1:1');
    bench.pump.backendDatagram(bench.ports.opened[0]!, Uint8Array.of(1));
    bench.pump.endTurn();
    const line: FlowLine = {
      name: '0.1',
      listener: listenerConfig().address,
      cluster: 'c',
      client: addressOf('10.1.0.1:1'),
      local: undefined,
      backend: backendsOf(1)[0]!,
      phase: 'Established',
      requests: 2,
      responses: 1,
      age: seconds(2),
      idleIn: seconds(30),
    };
    expect(list(bench, {})).toEqual({ kind: 'Flows', flows: [line], matched: 1 });
  });

  test('gives those that fit every part of the filter, by any mixture of flows', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 2 }), clients), { maxLength: 30 }),
        filters,
        (flows, filter) => {
          const bench = started({ backends: backendsOf(1, 2, 3) });
          for (const [listener, client] of flows) ask(bench, client, listener);
          const all = namesOf(list(bench, {}));
          expect(new Set(all).size).toBe(bench.plane.flowCount);
          const answer = list(bench, filter);
          const expected = linesOf(list(bench, {})).filter((line) => fits(line, filter));
          expect(linesOf(answer)).toEqual(expected);
          expect(answer).toMatchObject({ matched: expected.length });
        },
      ),
      { numRuns: 100 },
    );
  });

  test('gives the same in parts of any size, and meets each flow that stays once', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 2 }), clients), { maxLength: 30 }),
        filters,
        fc.integer({ min: 1, max: 7 }),
        (flows, filter, slots) => {
          const bench = started({ backends: backendsOf(1, 2, 3) });
          for (const [listener, client] of flows) ask(bench, client, listener);
          const whole = list(bench, filter);
          const parts = inParts(bench, filter, slots);
          expect(parts.flatMap(linesOf)).toEqual(linesOf(whole));
          for (const part of parts) expect(linesOf(part).length).toBeLessThanOrEqual(slots);
        },
      ),
      { numRuns: 100 },
    );
  });

  test('tells the hosts of an IPv6 network apart by every word of their addresses', () => {
    const bench = started();
    const hosts = ['db8::1', 'db9::1', 'db8:1::1', 'db8:0:0:1::1', 'db8::2'].map(
      (host) => `2001:${host}`,
    );
    for (const host of hosts) ask(bench, `[${host}]:7`, 2);
    for (const host of hosts) {
      const found = linesOf(list(bench, { source: block(host) }));
      expect(found.map(({ client }) => client)).toEqual([addressOf(`[${host}]:7`)]);
    }
  });

  test('gives no more than the limit, says how many there are, and never more than fit one answer', () => {
    const bench = started();
    for (let n = 1; n <= 9; n += 1) ask(bench, `10.1.0.1:${n}`);
    expect(list(bench, {}, 4)).toMatchObject({ matched: 9 });
    expect(linesOf(list(bench, {}, 4))).toHaveLength(4);
    expect(linesOf(list(bench, {}, 0))).toEqual([]);
    expect(linesOf(list(bench, {}, FLOWS_LISTED_MAX + 1))).toHaveLength(9);
  });
});

describe('a flow by its name', () => {
  test('is shown, and killed: its client opens another, which has another name', () => {
    const bench = started();
    ask(bench, '10.1.0.1:1');
    ask(bench, '10.1.0.2:1');
    expect(granted(bench, { kind: 'ShowFlow', flow: '0.2' })).toMatchObject({
      kind: 'Flow',
      flow: { name: '0.2', client: addressOf('10.1.0.2:1') },
    });
    expect(granted(bench, { kind: 'KillFlow', flow: '0.2' })).toMatchObject({
      kind: 'Killed',
      flow: { name: '0.2' },
    });
    expect(namesOf(list(bench, {}))).toEqual(['0.1']);
    expect(bench.ports.open.size).toBe(1);
    ask(bench, '10.1.0.2:1');
    expect(namesOf(list(bench, {}))).toEqual(['0.1', '0.3']);
    expect(bench.plane.countersOf(listenerId(0))).toMatchObject({ flowsEvicted: 1 });
  });

  test('is not found under the name of one that is gone, of no listener, or no name at all', () => {
    const bench = started();
    ask(bench, '10.1.0.1:1');
    granted(bench, { kind: 'KillFlow', flow: '0.1' });
    ask(bench, '10.1.0.1:1');
    for (const flow of [
      '0.1',
      '7.2',
      '0',
      '0.',
      '.2',
      'x.y',
      '0.2.',
      '-0.2',
      '0.99999999999999999',
    ]) {
      for (const kind of ['ShowFlow', 'KillFlow'] as const) {
        expect(bench.command({ kind, flow })).toMatchObject({ error: { kind: 'NotFound' } });
      }
    }
    expect(bench.plane.flowCount).toBe(1);
  });
});

describe('Why', () => {
  test('tells the key, the policy and what would be chosen, and whom a live flow is pinned to', () => {
    const bench = started({ loadBalancing: 'HRW', onBackendDown: 'rebind' });
    const client = addressOf('10.1.0.1:1');
    const why = { kind: 'Why', listener: listenerConfig().address, client } as const;
    const before = granted(bench, why);
    const { high, low } = affinityKey(PLACEMENT_SEED, client, false);
    const key = high.toString(16).padStart(8, '0') + low.toString(16).padStart(8, '0');
    expect(before).toMatchObject({ cluster: 'c', policy: 'HRW', key, pinned: undefined });
    const place = ask(bench, '10.1.0.1:1')!;
    expect(chosen(before)).toBe(place);
    const live = { flow: { name: '0.1', backend: { address: addressOf(place) } } };
    expect(granted(bench, why)).toMatchObject({ pinned: { ...live, fate: 'keep' } });
    bench.pump.direct({
      generation: 1,
      directive: { kind: 'SetHealth', cluster: 'c', address: addressOf(place), healthy: false },
    });
    bench.pump.endTurn();
    const after = granted(bench, why);
    expect(after).toMatchObject({ pinned: { ...live, fate: 'rebind' } });
    expect(chosen(after)).not.toBe(place);
  });

  test('changes nothing for who comes next, under any policy', () => {
    for (const loadBalancing of POLICIES) {
      const [asked, unasked] = [started({ loadBalancing }), started({ loadBalancing })];
      for (let n = 1; n < 20; n += 1) {
        const client = `10.1.0.${n}:1`;
        const listener = listenerConfig().address;
        const answer = granted(asked, { kind: 'Why', listener, client: addressOf(client) });
        const place = ask(asked, client);
        expect(chosen(answer)).toBe(place);
        expect(ask(unasked, client)).toBe(place);
      }
    }
  });

  test('says which sources are dropped whatever would be chosen, as they are', () => {
    const deny = [{ base: addressOf('10.2.0.0:1'), bits: 16 }];
    const bench = started({ rates: { ...NO_SOURCE_RATES, deny } });
    const listener = listenerConfig().address;
    for (const [client, dropped] of [
      ['10.1.0.1:1', undefined],
      ['224.0.0.1:1', 'Invalid'],
      ['255.255.255.255:1', 'Invalid'],
      ['10.2.0.1:1', 'Denied'],
      [formatAddress(listener), 'Loop'],
      [formatAddress(backendsOf(1)[0]!.address), 'Loop'],
    ] as const) {
      const answer = granted(bench, { kind: 'Why', listener, client: addressOf(client) });
      expect(answer).toMatchObject({ kind: 'Why', dropped });
      expect(ask(bench, client) === undefined, client).toBe(dropped !== undefined);
    }
  });

  test('is not to be had of a listener that is closed, or that leads nowhere', () => {
    const bench = started();
    const client = addressOf('10.1.0.1:1');
    const listener = addressOf('10.0.0.99:53');
    expect(bench.command({ kind: 'Why', listener, client })).toMatchObject({
      error: { kind: 'NotFound', message: 'the listener 10.0.0.99:53 is not open' },
    });
    bench.command({ kind: 'RemoveFrontend', cluster: 'c', address: SECOND });
    expect(bench.command({ kind: 'Why', listener: SECOND, client })).toMatchObject({
      error: { message: 'the listener 10.0.0.54:53 leads to no cluster' },
    });
  });
});

describe('Preview', () => {
  test('tells what a reload would move, counts its commands, changes nothing, and is answered when it is ready', () => {
    const bench = started({ loadBalancing: 'HRW', backends: backendsOf(1, 2, 3, 4) });
    for (let n = 1; n <= 40; n += 1) ask(bench, `10.1.0.${n}:1`);
    const settings = { loadBalancing: 'HRW', backends: backendsOf(1, 2, 3) } as const;
    const config = configFor({ ...settings, onBackendRemoved: 'close' });
    const [directed, generation] = [bench.directives.length, bench.status().generation];
    let answer: Answer | undefined;
    bench.controlPump.command({ kind: 'Preview', config }, (reply) => {
      answer = reply.ok ? reply.answer : undefined;
    });
    expect(answer).toBeUndefined();
    untilOver(() => {
      if (bench.wake !== undefined) bench.fire();
      return bench.wake !== undefined;
    });
    if (answer?.kind !== 'Previewed') throw new Error('a dry run is answered');
    const [first] = answer.preview.listeners;
    const onFour = list(bench, { backend: backendsOf(4)[0]!.address });
    const matched = onFour.kind === 'Flows' ? onFour.matched : 0;
    expect(first!.flows).toEqual({ keep: 40 - matched, rebind: 0, close: matched });
    expect(first!.moved!.length / answer.preview.keys).toBeCloseTo(0.25, 1);
    expect(answer.commands.map(({ kind }) => kind)).toEqual(['AddCluster', 'RemoveBackend']);
    expect(bench.status().generation).toBe(generation);
    const kinds = bench.directives.slice(directed).map(({ directive }) => directive.kind);
    expect(new Set(kinds)).toEqual(new Set(['Query']));
  });

  test('is refused where the reload would be', () => {
    const bench = started();
    const config = configOf([clusterSettings()], [listenerConfig({ maxRxDatagramSize: -1 })]);
    const reload = bench.command({ kind: 'Reload', config });
    expect(reload).toMatchObject({ ok: false });
    expect(bench.command({ kind: 'Preview', config })).toEqual(reload);
  });
});

const POLICIES: readonly LoadBalancing[] = [
  'ROUND_ROBIN',
  'RANDOM',
  'LEAST_LOADED',
  'POWER_OF_TWO',
  'HRW',
  'MAGLEV',
];

const clients = fc
  .record({
    host: fc.integer({ min: 1, max: 3 }),
    net: fc.integer({ min: 1, max: 2 }),
    v6: fc.boolean(),
  })
  .map(({ host, net, v6 }) => (v6 ? `[2001:db8:${net}::${host}]:7` : `10.${net}.0.${host}:7`));

const filters: fc.Arbitrary<FlowFilter> = fc.record({
  listener: fc.constantFrom(undefined, undefined, listenerConfig().address, SECOND),
  cluster: fc.constantFrom(undefined, undefined, 'c', 'd'),
  backend: fc.constantFrom(undefined, addressOf('10.0.0.1:53'), addressOf('[::ffff:10.0.0.2]:53')),
  source: fc.constantFrom(
    undefined,
    ...['10.1.0.0/16', '10.0.0.0/8', '10.2.0.1', '2001:db8:1::/48', '2001:db8::/32', '::/0'].map(
      block,
    ),
  ),
});

/** By text, so that it shares nothing with the masks it checks. */
function fits(line: FlowLine, { listener, cluster, backend, source }: FlowFilter): boolean {
  const at = formatAddress(line.backend.address);
  return (
    (listener === undefined || formatAddress(line.listener) === formatAddress(listener)) &&
    (cluster === undefined || line.cluster === cluster) &&
    (backend === undefined || at === formatAddress(backend).replace(/\[::ffff:(.*)\]/, '$1')) &&
    (source === undefined || bitsOf(formatAddress(line.client)).startsWith(prefixOf(source)))
  );
}

function prefixOf({ base, bits }: Cidr): string {
  return bitsOf(formatAddress(base)).slice(0, bits + 1);
}

/** `4` or `6`, then the bits of an address in text. */
function bitsOf(text: string): string {
  const { family, a, b, c, d } = addressOf(text.replace(/:\d+$/, ':1'));
  const words = family === 4 ? [a] : [a, b, c, d];
  return String(family) + words.map((word) => (word >>> 0).toString(2).padStart(32, '0')).join('');
}

function block(text: string): Cidr {
  const parsed = parseCidr(text);
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.cidr;
}

function configFor(more: Partial<ClusterSettings>): ReturnType<typeof configOf> {
  return configOf(
    [clusterSettings(more), clusterSettings({ cluster: 'd', backends: backendsOf(1, 2) })],
    [
      listenerConfig({ maxFlows: 1_000 }),
      listenerConfig({ address: SECOND }),
      listenerConfig({ address: V6, cluster: 'd' }),
    ],
  );
}

function started(more: Partial<ClusterSettings> = {}): ControlBench {
  const bench = new ControlBench();
  bench.configure(configFor(more));
  return bench;
}

/** Where a datagram of this client opens a flow to; undefined when it opens none. */
function ask(bench: ControlBench, client: string, listener = 0): string | undefined {
  bench.ports.calls = [];
  bench.pump.clientDatagram(listenerId(listener), addressOf(client), undefined, Uint8Array.of(1));
  bench.pump.endTurn();
  return bench.ports.calls
    .find((call) => call.startsWith('open'))
    ?.split(' ')
    .at(-1);
}

function granted(bench: ControlBench, command: Command): Answer {
  const reply = bench.command(command);
  if (!reply.ok || reply.answer === undefined) throw new Error('it is answered');
  return reply.answer;
}

function list(bench: ControlBench, filter: FlowFilter, limit = 1_000): Answer {
  return granted(bench, { kind: 'ListFlows', filter, limit });
}

function inParts(bench: ControlBench, filter: FlowFilter, slots: number): Answer[] {
  const parts: Answer[] = [];
  let from: FlowCursor | undefined;
  untilOver(() => {
    const part = granted(bench, { kind: 'ListFlows', filter, limit: 1_000, slots, from });
    parts.push(part);
    from = part.kind === 'Flows' ? part.next : undefined;
    return from !== undefined;
  });
  return parts;
}

function linesOf(answer: Answer): readonly FlowLine[] {
  return answer.kind === 'Flows' ? answer.flows : [];
}

function namesOf(answer: Answer): string[] {
  return linesOf(answer).map(({ name }) => name);
}

function chosen(answer: Answer): string | undefined {
  const choice = answer.kind === 'Why' ? answer.selection.choice : undefined;
  return choice?.chosen === undefined ? undefined : formatAddress(choice.chosen.address);
}
