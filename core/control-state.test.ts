import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyCommand, configs } from '../test/config-arbitraries.ts';
import { addressOf, backendsOf, clusterSettings, listenerConfig } from '../test/plane-bench.ts';
import { ipv4 } from './address.ts';
import type { ConfigCommand } from './commands.ts';
import { NO_SOURCE_RATES, type SourceRates } from './config.ts';
import { applyCommands, EMPTY_STATE, type Applied, type ControlState } from './control-state.ts';
import { knobsOf, reconcileState } from './reconcile.ts';
import { sameValue } from './same-value.ts';
import { seconds } from './time.ts';

const address = addressOf('10.0.0.53:53');
const [one, two] = backendsOf(1, 2);
const ADD: ConfigCommand = { kind: 'AddListener', config: listenerConfig() };
const ACTIVATE: ConfigCommand = { kind: 'ActivateListener', address };
const CLUSTER: ConfigCommand = { kind: 'AddCluster', settings: knobsOf(clusterSettings()) };

describe('listeners', () => {
  test('B22, duplicate_listener_address_rejected: an address has one listener, also in other clothes', () => {
    expect(run(ADD, ADD)).toMatchObject({ ok: false, error: { kind: 'Exists' } });
    const mapped = listenerConfig({ address: addressOf('[::ffff:10.0.0.53]:53') });
    const ADD_MAPPED: ConfigCommand = { kind: 'AddListener', config: mapped };
    expect(run(ADD, ADD_MAPPED)).toMatchObject({ ok: false });
    expect(listener(run(ADD_MAPPED))).toEqual(listener(run(ADD)));
  });

  test('one is inactive until activated, and a second time changes nothing', () => {
    expect(listener(run(ADD))).toMatchObject({ active: false });
    expect(listener(run(ADD, ACTIVATE))).toMatchObject({ active: true });
    expect(onto(run(ADD, ACTIVATE), ACTIVATE)).toMatchObject({ ok: true, changed: false });
  });

  test('B4: a listener that was deactivated can be activated again', () => {
    const off: ConfigCommand = { kind: 'DeactivateListener', address };
    expect(listener(run(ADD, ACTIVATE, off))).toMatchObject({ active: false });
    expect(listener(run(ADD, ACTIVATE, off, ACTIVATE))).toEqual(listener(run(ADD, ACTIVATE)));
  });

  test('B3: one can be removed while it is active', () => {
    const gone = run(ADD, ACTIVATE, { kind: 'RemoveListener', address });
    expect(gone).toMatchObject({ ok: true, changed: true, state: { listeners: new Map() } });
  });

  test('test_udp_state_roundtrip: a partial patch keeps the other fields, and never the address or the route', () => {
    const patch = { frontTimeout: seconds(7), address: addressOf('1.1.1.1:1'), cluster: 'x' };
    expect(listener(run(ADD, { kind: 'UpdateListener', address, patch }))).toEqual({
      active: false,
      config: { ...listenerConfig(), frontTimeout: seconds(7) },
    });
  });

  test.each<ConfigCommand>([
    { kind: 'UpdateListener', address, patch: {} },
    { kind: 'RemoveListener', address },
    ACTIVATE,
    { kind: 'DeactivateListener', address },
    { kind: 'AddFrontend', cluster: 'c', address },
    { kind: 'RemoveFrontend', cluster: 'c', address },
    { kind: 'RemoveCluster', cluster: 'c' },
    { kind: 'AddBackend', cluster: 'c', backend: one! },
    { kind: 'SetBackends', cluster: 'c', backends: [] },
  ])('$kind of what is not there is refused', (command) => {
    expect(run(command)).toMatchObject({ ok: false, error: { kind: 'NotFound' } });
  });

  test.each([
    [{ maxFlows: -1 }, 'max_flows'],
    [{ maxFlows: 4_194_305 }, 'max_flows'],
    [{ maxRxDatagramSize: 65_508 }, 'max_rx_datagram_size'],
    [{ maxRxDatagramSize: 1.5 }, 'max_rx_datagram_size'],
  ])('%o is refused with the name of the key', (patch, key) => {
    for (const applied of [
      run(ADD, { kind: 'UpdateListener', address, patch }),
      run({ kind: 'AddListener', config: listenerConfig(patch) }),
    ]) {
      expect(applied).toMatchObject({ ok: false, error: { kind: 'Invalid' } });
      expect(!applied.ok && applied.error.message).toContain(key);
    }
  });

  test('there are no more than a process can number', () => {
    const many = Array.from({ length: 1_025 }, (_, n): ConfigCommand => {
      return { kind: 'AddListener', config: listenerConfig({ address: { ...address, port: n } }) };
    });
    expect(run(...many.slice(1))).toMatchObject({ ok: true });
    expect(run(...many)).toMatchObject({ ok: false, error: { kind: 'Invalid' } });
  });
});

describe('routes', () => {
  const to = (cluster: string): ConfigCommand => ({ kind: 'AddFrontend', cluster, address });

  test('a listener leads to one cluster, the last that was named, whether it is there or not', () => {
    expect(listener(run(ADD, to('a'), to('b')))).toMatchObject({ config: { cluster: 'b' } });
    expect(onto(run(ADD, to('a')), to('a'))).toMatchObject({ changed: false });
  });

  test('B9: removing a route that is another cluster’s is refused', () => {
    const stale: ConfigCommand = { kind: 'RemoveFrontend', cluster: 'a', address };
    const state = run(ADD, to('a'), to('b'));
    expect(onto(state, stale)).toMatchObject({ ok: false, error: { kind: 'NotFound' } });
    expect(listener(run(ADD, to('a'), stale)).config.cluster).toBeUndefined();
  });

  test('B10: a cluster that was removed is back by its own command alone, and finds its listeners', () => {
    const gone = run(CLUSTER, ADD, ACTIVATE, { kind: 'RemoveCluster', cluster: 'c' });
    const updated = onto(gone, { kind: 'UpdateListener', address, patch: { maxFlows: 3 } });
    expect(stateOf(updated).clusters.size).toBe(0);
    expect(listener(onto(updated, CLUSTER)).config.cluster).toBe('c');
  });
});

describe('clusters and backends', () => {
  const backend = (at: typeof one): ConfigCommand => ({
    kind: 'AddBackend',
    cluster: 'c',
    backend: at!,
  });

  test('new settings keep the backends, and the same ones change nothing', () => {
    const settings = knobsOf(clusterSettings({ requests: 3 }));
    const state = run(CLUSTER, backend(one), { kind: 'AddCluster', settings });
    expect(stateOf(state).clusters.get('c')).toEqual({ ...settings, backends: [one] });
    expect(onto(state, { kind: 'AddCluster', settings: structuredClone(settings) })).toMatchObject({
      changed: false,
    });
  });

  test('a backend is replaced by the next of its id and address, in its place', () => {
    const heavy = { ...one!, weight: 200 };
    expect(backends(run(CLUSTER, backend(one), backend(two), backend(heavy)))).toEqual([
      heavy,
      two,
    ]);
  });

  test('removal and weight mean every id at the address', () => {
    const twin = { ...one!, id: 'twin' };
    const all = run(CLUSTER, backend(one), backend(twin), backend(two));
    const at = { cluster: 'c', address: one!.address };
    expect(backends(onto(all, { kind: 'RemoveBackend', ...at }))).toEqual([two]);
    expect(backends(onto(all, { kind: 'SetWeight', ...at, weight: 3 }))).toEqual([
      { ...one!, weight: 3 },
      { ...twin, weight: 3 },
      two,
    ]);
    for (const kind of ['RemoveBackend', 'SetWeight'] as const) {
      const elsewhere = { kind, cluster: 'c', address: addressOf('9.9.9.9:9'), weight: 1 };
      expect(onto(all, elsewhere)).toMatchObject({ ok: false, error: { kind: 'NotFound' } });
    }
  });

  test.each([-1, 256, 0.5, Number.NaN])(
    'B21: a weight of %d is refused, never guessed',
    (weight) => {
      for (const command of [
        { kind: 'SetWeight', cluster: 'c', address: one!.address, weight } as const,
        backend({ ...one!, weight }),
      ]) {
        expect(run(CLUSTER, backend(one), command)).toMatchObject({
          ok: false,
          error: { kind: 'Invalid' },
        });
      }
    },
  );

  test('an IPv4-mapped address of a backend is the IPv4 one', () => {
    const mapped = { ...one!, address: addressOf('[::ffff:10.0.0.1]:53') };
    expect(onto(run(CLUSTER, backend(one)), backend(mapped))).toMatchObject({ changed: false });
    const whole: ConfigCommand = { kind: 'SetBackends', cluster: 'c', backends: [mapped] };
    expect(backends(run(CLUSTER, whole))).toEqual([one]);
  });

  test.each<Partial<SourceRates>>([
    { newFlowsPerSecond: 0.5 },
    { newFlowsBurst: -1 },
    { datagramsPerSecond: 2 ** 32 + 1 },
    { datagramsBurst: Number.NaN },
    { columns: 0 },
    { columns: 300 },
    { columns: 131_072 },
    { deny: Array.from({ length: 10_001 }, (_, n) => ({ base: ipv4(n, 0), bits: 32 })) },
  ])('rates that no data plane can keep are refused, alone and in a file', (more) => {
    const settings = clusterSettings({ rates: { ...NO_SOURCE_RATES, ...more } });
    const refusal = { ok: false, error: { kind: 'Invalid' } };
    expect(run({ kind: 'AddCluster', settings: knobsOf(settings) })).toMatchObject(refusal);
    const file = { listeners: [], clusters: [settings], grace: seconds(5) };
    expect(run(...reconcileState(EMPTY_STATE, file))).toMatchObject(refusal);
  });

  test('a cluster without a name is refused', () => {
    const settings = knobsOf(clusterSettings({ cluster: '' }));
    expect(run({ kind: 'AddCluster', settings })).toMatchObject({ error: { kind: 'Invalid' } });
  });
});

describe('laws', () => {
  test('a refused command changes nothing, and one that changes nothing says so', () => {
    fc.assert(
      fc.property(configs, fc.array(anyCommand, { maxLength: 30 }), (first, commands) => {
        let state = stateOf(applyCommands(EMPTY_STATE, reconcileState(EMPTY_STATE, first)));
        for (const command of commands) {
          const before = structuredClone(state);
          const applied = applyCommands(state, [command]);
          expect(state, 'a state is never written to').toEqual(before);
          if (!applied.ok) continue;
          expect(applied.changed).toBe(
            !sameValue([...entries(applied.state)], [...entries(state)]),
          );
          state = applied.state;
          if (command.kind === 'AddListener') continue;
          const again = applyCommands(state, [command]);
          if (again.ok) expect(again.changed, `${command.kind} again`).toBe(false);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('an access log that tells nothing is refused', () => {
    for (const settings of [
      { oneIn: 0, linesPerSecond: 1 },
      { oneIn: 1, linesPerSecond: 0 },
      { oneIn: 1.5, linesPerSecond: 1 },
      { oneIn: 1, linesPerSecond: 1_000_001 },
    ]) {
      expect(run({ kind: 'SetAccessLog', settings })).toMatchObject({ error: { kind: 'Invalid' } });
    }
  });

  test('of several the first refusal undoes all', () => {
    expect(run(CLUSTER, ADD, ADD)).toMatchObject({ ok: false });
    expect(run(CLUSTER, ADD, ADD)).not.toHaveProperty('state');
  });

  test('cluster, route and backend settings of distinct names converge in any order', () => {
    const commands: ConfigCommand[] = [
      { kind: 'AddCluster', settings: knobsOf(clusterSettings({ cluster: 'c', requests: 1 })) },
      { kind: 'AddCluster', settings: knobsOf(clusterSettings({ cluster: 'd' })) },
      { kind: 'AddFrontend', cluster: 'c', address },
      { kind: 'UpdateListener', address, patch: { maxFlows: 3 } },
      { kind: 'ActivateListener', address },
      { kind: 'SetGrace', grace: seconds(9) },
    ];
    const expected = stateOf(run(ADD, ...commands));
    fc.assert(
      fc.property(fc.shuffledSubarray(commands, { minLength: commands.length }), (shuffled) => {
        expect(stateOf(run(ADD, ...shuffled))).toEqual(expected);
      }),
    );
  });
});

test.each([
  [1, 1, true],
  [1, '1', false],
  [null, {}, false],
  [[], {}, false],
  [[1, [2]], [1, [2]], true],
  [[1, 2], [1], false],
  [{ a: 1, b: undefined }, { a: 1 }, true],
  [{ a: 1 }, { b: 1 }, false],
  [Uint8Array.of(1, 2), Uint8Array.of(1, 2), true],
  [Uint8Array.of(1, 2), Uint8Array.of(1, 3), false],
  [undefined, {}, false],
])('%o and %o say the same: %s', (left, right, same) => {
  expect(sameValue(left, right)).toBe(same);
  expect(sameValue(right, left)).toBe(same);
});

function* entries({ listeners, clusters, grace, accessLog }: ControlState): Generator {
  yield [...listeners];
  yield [...clusters];
  yield grace;
  yield accessLog;
}

function run(...commands: readonly ConfigCommand[]): Applied {
  return applyCommands(EMPTY_STATE, commands);
}

function onto(applied: Applied, ...commands: readonly ConfigCommand[]): Applied {
  return applyCommands(stateOf(applied), commands);
}

function stateOf(applied: Applied): ControlState {
  if (!applied.ok) throw new Error(applied.error.message);
  return applied.state;
}

function listener(applied: Applied): { config: { cluster: string | undefined } } {
  return [...stateOf(applied).listeners.values()][0]!;
}

function backends(applied: Applied): unknown {
  return stateOf(applied).clusters.get('c')!.backends;
}
