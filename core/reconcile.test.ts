import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { configs } from '../test/config-arbitraries.ts';
import {
  addressOf,
  backendsOf,
  clusterSettings,
  configOf,
  listenerConfig,
} from '../test/plane-bench.ts';
import { applyCommands, EMPTY_STATE, servedConfig, type ControlState } from './control-state.ts';
import type { Config } from './config.ts';
import { reconcile, reconcileState } from './reconcile.ts';
import { seconds } from './time.ts';

const c = clusterSettings();
const at53 = addressOf('10.0.0.53:53');

describe('what stays the same is not mentioned', () => {
  test('of two equal configurations nothing is', () => {
    fc.assert(
      fc.property(configs, (config) => {
        expect(reconcile(config, structuredClone(config))).toEqual([]);
      }),
    );
  });

  test('B8: a listener that changes keeps its route', () => {
    const wanted = listenerConfig({ maxFlows: 4, ipv6Only: true });
    const commands = reconcile(configOf(), configOf([c], [wanted]));
    expect(commands).toMatchObject([
      { kind: 'UpdateListener', address: at53, patch: { maxFlows: 4, ipv6Only: true } },
    ]);
    expect(after(configOf(), commands).listeners.get('10.0.0.53:53')).toEqual({
      active: true,
      config: { ...wanted, cluster: 'c' },
    });
  });

  test('a field that is left out is taken back', () => {
    const old = configOf([c], [listenerConfig({ bindRetry: seconds(1) })]);
    const commands = reconcile(old, configOf());
    expect(after(old, commands).listeners.get('10.0.0.53:53')?.config.bindRetry).toBeUndefined();
  });

  test('one backend more, one fewer and one with another weight are three commands', () => {
    const [one, two, three, four] = backendsOf(1, 2, 3, 4);
    const old = clusterSettings({ backends: [one!, two!, three!] });
    const wanted = clusterSettings({ backends: [one!, { ...three!, weight: 5 }, four!] });
    expect(reconcile(configOf([old]), configOf([wanted]))).toEqual([
      { kind: 'RemoveBackend', cluster: 'c', address: two!.address },
      { kind: 'AddBackend', cluster: 'c', backend: { ...three!, weight: 5 } },
      { kind: 'AddBackend', cluster: 'c', backend: four! },
    ]);
  });

  test('another order, or a hundred changes, are one command with the whole list', () => {
    const turned = clusterSettings({ backends: backendsOf(2, 1) });
    const many = clusterSettings({ backends: backendsOf(...Array.from({ length: 102 }).keys()) });
    for (const wanted of [turned, many]) {
      expect(reconcile(configOf(), configOf([wanted]))).toEqual([
        { kind: 'SetBackends', cluster: 'c', backends: wanted.backends },
      ]);
    }
  });
});

describe('order', () => {
  test('listeners go first, clusters come before the listeners that lead there and go after them', () => {
    const old = configOf(
      [clusterSettings({ cluster: 'old' })],
      [
        listenerConfig({ cluster: 'old' }),
        listenerConfig({ cluster: 'old', address: addressOf('10.0.0.54:53') }),
      ],
    );
    const wanted = configOf(
      [clusterSettings({ cluster: 'new' })],
      [
        listenerConfig({ cluster: 'new' }),
        listenerConfig({ cluster: 'new', address: addressOf('10.0.0.55:53') }),
      ],
    );
    expect(reconcile(old, wanted).map(({ kind }) => kind)).toEqual([
      'RemoveListener',
      'AddCluster',
      'SetBackends',
      'AddFrontend',
      'AddListener',
      'ActivateListener',
      'RemoveCluster',
    ]);
  });

  test('no listener is ever without its cluster where both exist before and after', () => {
    fc.assert(
      fc.property(configs, configs, (old, wanted) => {
        const served = (state: ControlState): Set<string> =>
          new Set(
            [...state.listeners].flatMap(([key, { config }]) =>
              state.clusters.has(config.cluster ?? '') ? [key] : [],
            ),
          );
        let state = start(old);
        const before = served(state);
        const afterwards = served(start(wanted));
        for (const command of reconcile(old, wanted)) {
          state = applied(state, [command]);
          for (const key of before) {
            if (afterwards.has(key)) expect(served(state)).toContain(key);
          }
        }
      }),
    );
  });
});

describe('law: applying what leads from A to B onto A gives B', () => {
  test('for any two configurations', () => {
    fc.assert(
      fc.property(configs, configs, (old, wanted) => {
        expect(applied(start(old), reconcile(old, wanted))).toEqual(start(wanted));
      }),
      { numRuns: 1_000 },
    );
  });

  test('test_udp_state_roundtrip: from nothing, and back to it', () => {
    fc.assert(
      fc.property(configs, (config) => {
        const nothing = { ...configOf([], []), grace: config.grace };
        expect(servedConfig(start(config)).listeners).toEqual(config.listeners);
        const back = applied(start(config), reconcile(config, nothing));
        expect([back.listeners.size, back.clusters.size]).toEqual([0, 0]);
      }),
    );
  });

  test('also when somebody deactivated, moved or took away some of it meanwhile', () => {
    const tampering = fc.array(fc.tuple(fc.nat(3), fc.constantFrom(0, 1, 2)), { maxLength: 4 });
    fc.assert(
      fc.property(configs, configs, tampering, (old, wanted, tampered) => {
        let state = start(old);
        for (const [pick, how] of tampered) state = tamper(state, pick, how);
        expect(applied(state, reconcileState(state, wanted))).toEqual(start(wanted));
      }),
    );
  });

  test('every command of it changes something', () => {
    fc.assert(
      fc.property(configs, configs, (old, wanted) => {
        let state = start(old);
        for (const command of reconcile(old, wanted)) {
          const before = state;
          state = applied(state, [command]);
          expect(state).not.toEqual(before);
        }
      }),
    );
  });
});

function start(config: Config): ControlState {
  return applied(EMPTY_STATE, reconcileState(EMPTY_STATE, config));
}

function after(old: Config, commands: Parameters<typeof applyCommands>[1]): ControlState {
  return applied(start(old), commands);
}

function applied(state: ControlState, commands: Parameters<typeof applyCommands>[1]): ControlState {
  const result = applyCommands(state, commands);
  if (!result.ok) throw new Error(result.error.message);
  return result.state;
}

function tamper(state: ControlState, pick: number, how: 0 | 1 | 2): ControlState {
  const { config } = [...state.listeners.values()][pick] ?? {};
  const { cluster } = [...state.clusters.values()][pick] ?? {};
  if (how === 0 && config !== undefined) {
    return applied(state, [{ kind: 'DeactivateListener', address: config.address }]);
  }
  if (how === 1 && config !== undefined) {
    return applied(state, [{ kind: 'AddFrontend', address: config.address, cluster: 'd' }]);
  }
  if (how === 2 && cluster !== undefined) {
    return applied(state, [{ kind: 'RemoveCluster', cluster }]);
  }
  return state;
}
