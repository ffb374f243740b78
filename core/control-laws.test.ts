/** Both planes under commands: what holds whatever is asked, in whatever order. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyCommand, CLUSTERS, configs } from '../test/config-arbitraries.ts';
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
import { listenerId, LISTENERS_MAX, type SocketId } from './brand.ts';
import type { Command } from './commands.ts';
import type { Config } from './config.ts';
import { ListenerNumbers } from './control-directives.ts';
import { seconds } from './time.ts';

const commands: fc.Arbitrary<Command> = fc.oneof(
  { weight: 6, arbitrary: anyCommand },
  { weight: 1, arbitrary: configs.map((config) => ({ kind: 'Reload' as const, config })) },
  { weight: 1, arbitrary: fc.constant({ kind: 'Status' as const }) },
);

const address = addressOf('10.0.0.53:53');

describe('laws', () => {
  test('whatever was asked before, a reload gives what a start with that file gives', () => {
    fc.assert(
      fc.property(configs, fc.array(commands, { maxLength: 20 }), configs, (first, asked, last) => {
        const bench = started(first);
        greet(bench);
        for (const command of asked) bench.command(command);
        expect(bench.command({ kind: 'Reload', config: last })).toMatchObject({ ok: true });
        const fresh = started(last);
        expect(observed(bench)).toEqual(observed(fresh));
        expect(placesOf(bench)).toEqual(placesOf(fresh));
      }),
      { numRuns: 100 },
    );
  });

  test('both planes agree after any commands: what Status says is what a start with it would give', () => {
    fc.assert(
      fc.property(configs, fc.array(commands, { maxLength: 20 }), (first, asked) => {
        const bench = started(first);
        for (const command of asked) bench.command(command);
        const { listeners, clusters, grace } = bench.status();
        const served: Config = {
          listeners: listeners.filter(({ active }) => active).map(({ config }) => config),
          clusters: clusters.map(({ settings, backends }) => {
            return { ...settings, backends: backends.map(({ backend }) => backend) };
          }),
          grace,
        };
        const fresh = started(served);
        expect(observed(bench).planes).toEqual(observed(fresh).planes);
        expect(placesOf(bench)).toEqual(placesOf(fresh));
      }),
      { numRuns: 100 },
    );
  });

  test('a refused command changes nothing, one that changes nothing says so, and neither directs', () => {
    fc.assert(
      fc.property(configs, fc.array(commands, { maxLength: 30 }), (first, asked) => {
        const bench = started(first);
        for (const command of asked) {
          const before = bench.status();
          const directed = bench.directives.length;
          const reply = bench.command(command);
          if (reply.ok && reply.changed) {
            expect(reply.generation).toBe(before.generation + 1);
            const sent = bench.directives.slice(directed);
            expect(new Set(sent.map(({ generation }) => generation)).size).toBeLessThan(2);
            continue;
          }
          expect(bench.directives.length).toBe(directed);
          expect(bench.status()).toEqual(before);
        }
        expect(bench.plane.staleDirectives).toBe(0);
      }),
      { numRuns: 100 },
    );
  });

  test('flows of unchanged listeners survive any reload, and of the others none', () => {
    fc.assert(
      fc.property(configs, configs, (first, last) => {
        const bench = started(first);
        const opened = greet(bench);
        bench.command({ kind: 'Reload', config: last });
        for (const [name, socket] of opened) {
          const [before, now] = [first, last].map(({ listeners }) =>
            listeners.find((one) => formatAddress(one.address) === name),
          );
          const survives =
            now?.ipv6Only === before?.ipv6Only && now?.receiveBuffer === before?.receiveBuffer;
          expect(bench.ports.open.has(socket), name).toBe(now !== undefined && survives);
        }
      }),
      { numRuns: 100 },
    );
  });

  test('S0: a repeated Activate never displaces a live session', () => {
    fc.assert(
      fc.property(configs, (config) => {
        const bench = started(config);
        greet(bench);
        const open = [...bench.ports.open];
        bench.ports.calls = [];
        for (const { address: at } of config.listeners) {
          expect(bench.command({ kind: 'ActivateListener', address: at })).toMatchObject({
            ok: true,
            changed: false,
          });
        }
        expect(bench.ports.calls).toEqual([]);
        expect([...bench.ports.open]).toEqual(open);
      }),
    );
  });

  test('a number is one listener’s at a time, is used again late, and there are as many as listeners', () => {
    const key = fc.nat(LISTENERS_MAX);
    fc.assert(
      fc.property(fc.array(key, { maxLength: 200, size: 'max' }), (walk) => {
        const numbers = new ListenerNumbers();
        const held = new Map<string, number>();
        for (const step of walk.map((n) => String(n % 9))) {
          if (held.delete(step)) {
            numbers.release(step);
          } else {
            const id = numbers.take(step);
            expect([...held.values()]).not.toContain(id);
            held.set(step, id);
          }
          for (const [name, id] of held) expect(numbers.of(name)).toBe(id);
        }
      }),
    );
    const numbers = new ListenerNumbers();
    for (let n = 0; n < LISTENERS_MAX; n += 1) expect(numbers.take(`${n}`)).toBe(n);
    expect(() => numbers.take('one more')).toThrow('bound');
    numbers.release('7');
    expect(numbers.take('another')).toBe(7);
  });
});

describe('traps of spec §15.2', () => {
  test('B3: RemoveListener on an active listener closes its socket, and a soft stop ends', () => {
    const bench = started(configOf());
    bench.askAnew();
    expect(bench.command({ kind: 'RemoveListener', address })).toMatchObject({ changed: true });
    expect(bench.ports.listening.size + bench.ports.open.size).toBe(0);
    expect(bench.askAnew()).toBeUndefined();
    bench.controlPump.drain();
    expect(bench.reports.at(-1)).toMatchObject({ kind: 'Stopped' });
  });

  test('B4: Deactivate, then Activate serves again, on a socket of its own', () => {
    const bench = started(configOf());
    bench.askAnew();
    bench.command({ kind: 'DeactivateListener', address });
    expect(bench.ports.listening.size + bench.ports.open.size).toBe(0);
    expect(bench.status().listeners).toMatchObject([{ active: false, listener: undefined }]);
    bench.command({ kind: 'ActivateListener', address });
    expect([...bench.ports.listening]).toEqual([1]);
    expect(placesOf(bench).get('10.0.0.53:53')).toBeDefined();
  });

  test('B8, listener_diff: a listener whose socket has to be another is active again, with its route', () => {
    const bench = started(configOf());
    bench.askAnew();
    bench.ports.calls = [];
    const config = configOf([clusterSettings()], [listenerConfig({ sendBuffer: 1 })]);
    bench.command({ kind: 'Reload', config });
    const calls = bench.ports.calls.filter((call) => call.includes('listen') || call[0] === 'c');
    expect(calls).toEqual(['close u1', 'unlisten 0', 'listen 1 10.0.0.53:53 4194304/1']);
    expect(placesOf(bench).get('10.0.0.53:53')).toBeDefined();
  });

  test('B9: a stale frontend of another cluster unroutes nobody', () => {
    const bench = started(configOf());
    const stale = bench.command({ kind: 'RemoveFrontend', cluster: 'old', address });
    expect(stale).toMatchObject({ ok: false, error: { kind: 'NotFound' } });
    expect(bench.askAnew()).toBeDefined();
    bench.command({ kind: 'RemoveFrontend', cluster: 'c', address });
    expect(bench.askAnew()).toBeUndefined();
  });

  test('B10: nothing but AddCluster brings a removed cluster back, and then it serves', () => {
    const bench = started(configOf());
    bench.command({ kind: 'RemoveCluster', cluster: 'c' });
    bench.command({ kind: 'UpdateListener', address, patch: { maxFlows: 5 } });
    bench.command({ kind: 'AddFrontend', cluster: 'c', address });
    expect(bench.askAnew()).toBeUndefined();
    expect(bench.plane.countersOf(listenerId(0))).toMatchObject({ droppedNoBackend: 1 });
    bench.command({ kind: 'AddCluster', settings: clusterSettings() });
    bench.command({ kind: 'SetBackends', cluster: 'c', backends: backendsOf(1) });
    expect(bench.askAnew()).toBe('10.0.0.1:53');
  });

  test('B22: a second listener at an address is refused, alone and in a file, and the first goes on', () => {
    const bench = started(configOf());
    const twice = configOf([], [listenerConfig(), listenerConfig({ cluster: 'd' })]);
    for (const command of [
      { kind: 'AddListener', config: listenerConfig() },
      { kind: 'Reload', config: twice },
    ] as const) {
      const reply = bench.command(command);
      if (command.kind === 'AddListener')
        expect(reply).toMatchObject({ error: { kind: 'Exists' } });
      else expect(reply.ok).toBe(false);
      expect(bench.askAnew()).toBeDefined();
    }
  });
});

describe('routes', () => {
  test('AddFrontend before or after AddCluster comes to the same', () => {
    const steps: Command[] = [
      { kind: 'AddFrontend', cluster: 'c', address },
      { kind: 'AddCluster', settings: clusterSettings() },
      { kind: 'ActivateListener', address },
    ];
    const ends = [steps, steps.toReversed()].map((order) => {
      const bench = started(configOf([], []));
      bench.command({ kind: 'AddListener', config: listenerConfig({ cluster: undefined }) });
      for (const command of order) bench.command(command);
      bench.command({ kind: 'AddBackend', cluster: 'c', backend: backendsOf(3)[0]! });
      expect(bench.askAnew()).toBe('10.0.0.3:53');
      return observed(bench);
    });
    expect(ends[0]).toEqual(ends[1]);
  });
});

describe('a listener that does not open', () => {
  test('is inactive, says why, and is tried again by Activate and by the next reload', () => {
    const bench = started(configOf([clusterSettings()], []));
    bench.ports.listenerResult = 'EADDRINUSE';
    const reply = bench.command({ kind: 'Reload', config: configOf() });
    expect(reply).toMatchObject({ ok: true, changed: true });
    const idle = { active: false, listener: undefined, failure: 'EADDRINUSE' };
    expect(bench.status().listeners).toMatchObject([idle]);
    expect(bench.plane.countersOf(listenerId(0))).toBeUndefined();
    bench.command({ kind: 'ActivateListener', address });
    expect(bench.status().listeners).toMatchObject([idle]);
    bench.ports.listenerResult = undefined;
    bench.command({ kind: 'Reload', config: configOf() });
    expect(bench.status().listeners).toMatchObject([{ active: true, failure: undefined }]);
    expect(bench.ports.listening.size).toBe(1);
  });

  test('is not another one’s failure: a late report says nothing of who has the address now', () => {
    const bench = started(configOf());
    const late = {
      kind: 'ListenerFailed',
      generation: 1,
      errno: 'EIO',
      retry: undefined,
      address,
    } as const;
    bench.controlPump.report({ ...late, listener: listenerId(9) });
    expect(bench.status().listeners).toMatchObject([{ active: true, failure: undefined }]);
  });

  test('stays active where the data plane tries again by itself', () => {
    const bench = started(configOf([clusterSettings()], []));
    bench.ports.listenerResult = 'EADDRNOTAVAIL';
    const patient = listenerConfig({ bindRetry: seconds(1) });
    bench.command({ kind: 'Reload', config: configOf([clusterSettings()], [patient]) });
    expect(bench.status().listeners).toMatchObject([{ active: true, failure: 'EADDRNOTAVAIL' }]);
  });
});

describe('stopping', () => {
  test('a process that is about to end changes nothing any more, and still says how it is', () => {
    for (const stop of ['SoftStop', 'HardStop'] as const) {
      const bench = started(configOf());
      bench.ask('10.1.0.1:1');
      expect(bench.command({ kind: stop })).toMatchObject({ ok: true, changed: true });
      const reply = bench.command({ kind: 'Reload', config: configOf([], []) });
      expect(reply).toMatchObject({ ok: false, error: { kind: 'Stopping' } });
      expect(bench.status()).toMatchObject({ stopping: true, clusters: [{}] });
    }
  });

  test('a second hard stop changes nothing, and a soft stop uses the grace time of the last reload', () => {
    const bench = started(configOf());
    bench.ask('10.1.0.1:1');
    bench.command({ kind: 'Reload', config: { ...configOf(), grace: seconds(2) } });
    bench.command({ kind: 'SoftStop' });
    expect(bench.directives.at(-1)?.directive).toEqual({ kind: 'Drain', deadline: seconds(2) });
    bench.command({ kind: 'HardStop' });
    expect(bench.command({ kind: 'HardStop' })).toMatchObject({ ok: true, changed: false });
  });
});

function started(config: Config): ControlBench {
  const bench = new ControlBench();
  bench.configure(config);
  return bench;
}

/** One client at each open listener; the sockets that live on for it, by the listener's address. */
function greet(bench: ControlBench): Map<string, SocketId> {
  const sockets = new Map<string, SocketId>();
  for (const [name, id] of openListeners(bench)) {
    const before = bench.ports.opened.length;
    bench.pump.clientDatagram(id, addressOf('10.7.0.1:7'), undefined, Uint8Array.of(1));
    bench.pump.endTurn();
    const socket = bench.ports.opened[before];
    if (socket !== undefined && bench.ports.open.has(socket)) sockets.set(name, socket);
  }
  return sockets;
}

function openListeners(bench: ControlBench): Map<string, ReturnType<typeof listenerId>> {
  const open = bench.status().listeners.flatMap(({ config, listener }) => {
    return listener === undefined ? [] : [[formatAddress(config.address), listener] as const];
  });
  expect(new Set(open.map(([, id]) => id)), 'who is open is active').toEqual(bench.ports.listening);
  return new Map(open);
}

/** All that can be told apart from outside but generations and numbers. Listeners by address: their order means nothing. */
function observed(bench: ControlBench): { control: unknown; planes: unknown } {
  const { listeners, clusters, grace } = bench.status();
  const planes = CLUSTERS.map((name) => {
    const set = bench.plane.clusters.backendsOf(name);
    return set && { list: set.backends, ...set.availability(), tier: set.tier };
  });
  const flowConfigs = listeners
    .filter(({ active }) => active)
    .map(({ config }) => [config, bench.plane.clusters.configFor(config)] as const);
  const byAddress = new Map(flowConfigs.map((one) => [formatAddress(one[0].address), one]));
  return {
    control: {
      grace,
      listeners: new Map(
        listeners.map(({ config, active }) => [formatAddress(config.address), { config, active }]),
      ),
      clusters: new Map(clusters.map((one) => [one.settings.cluster, one])),
    },
    planes: { byAddress, planes, open: new Set(openListeners(bench).keys()) },
  };
}

/** Where listeners lead a stranger once all tables are built: the very backend if a key decides, else whether there is one. */
function placesOf(bench: ControlBench): Map<string, string | undefined> {
  untilOver(() => {
    const isBuilding = bench.plane.pollTimeout()?.reason === 'maglev-build';
    if (isBuilding) bench.pump.endTurn();
    return isBuilding;
  });
  const places = new Map<string, string | undefined>();
  for (const [name, id] of openListeners(bench)) {
    bench.ports.calls = [];
    bench.pump.clientDatagram(id, addressOf('10.8.0.1:8'), undefined, Uint8Array.of(1));
    bench.pump.endTurn();
    const place = bench.ports.calls
      .find((call) => call.startsWith('open'))
      ?.split(' ')
      .at(-1);
    const { config } = bench.status().listeners.find(({ listener }) => listener === id)!;
    const isKeyed = bench
      .status()
      .clusters.some(
        ({ settings }) =>
          settings.cluster === config.cluster && settings.loadBalancing !== 'ROUND_ROBIN',
      );
    places.set(name, isKeyed || place === undefined ? place : 'somewhere');
  }
  return places;
}
