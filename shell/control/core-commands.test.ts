/** What requests mean where they leave something out. */
import { describe, expect, test } from 'vitest';
import { listenerId, seconds, type Command, type Status } from '../../core/index.ts';
import { addressOf, backendsOf, clusterSettings, listenerConfig } from '../../test/plane-bench.ts';
import { knobsOf } from '../../core/reconcile.ts';
import { coreCommand } from './core-commands.ts';
import { decodeRequest } from './codec.ts';
import { stateRequests } from './state.ts';

const BOUNDS = { descriptorLimit: 1_000, maxConnections: 500, bufferSize: 9_000 };

describe('a listener', () => {
  test('is bounded by the global keys of the file, and leads nowhere', () => {
    const command = commandOf({
      command: 'listener udp add',
      address: '127.0.0.1:53',
      settings: { max_rx_datagram_size: 60_000 },
    });
    expect(command).toMatchObject({
      kind: 'AddListener',
      config: { maxFlows: 500, maxRxDatagramSize: 9_000, cluster: undefined, ipv6Only: false },
    });
  });

  test('on :: is bound without IPv4 where 0.0.0.0 has the same port, and only there', () => {
    const status = statusOf({ listen: '0.0.0.0:53' });
    const only = (address: string): unknown => {
      const command = commandOf({ command: 'listener udp add', address }, status);
      return command.kind === 'AddListener' ? command.config.ipv6Only : undefined;
    };
    expect(['[::]:53', '[::]:54', '[::1]:53', '0.0.0.0:54'].map(only)).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });
});

describe('a backend', () => {
  test('without an id is the one at this address, else a new one with a name of its place', () => {
    const status = statusOf({});
    const [known] = backendsOf(1);
    const idOf = (address: string, more: object = {}): unknown => {
      const backend = { address, ...more };
      const command = commandOf({ command: 'backend add', cluster: 'c', backend }, status);
      return command.kind === 'AddBackend' ? command.backend.id : undefined;
    };
    expect(idOf('10.0.0.1:53')).toBe(known?.id);
    expect(idOf('[::ffff:10.0.0.1]:53')).toBe(known?.id);
    expect(idOf('10.0.0.9:53')).toBe('c-2-10.0.0.9:53');
    expect(idOf('10.0.0.1:53', { backend_id: 'x' })).toBe('x');
  });

  test('has a weight of 100 unless given', () => {
    const backend = { address: '10.0.0.9:53' };
    const command = commandOf({ command: 'backend add', cluster: 'c', backend });
    expect(command).toMatchObject({ backend: { weight: 100, backup: false } });
  });

  test('drains until a deadline in milliseconds, or without one', () => {
    const drain = { command: 'backend drain', cluster: 'c', address: '10.0.0.1:53' };
    expect(commandOf({ ...drain, deadline_ms: 2_000 })).toMatchObject({ deadline: seconds(2) });
    expect(commandOf(drain)).toMatchObject({ kind: 'DrainBackend', deadline: undefined });
  });
});

test('a running state, said again as requests, makes the very commands that led to it', () => {
  const status = statusOf({ listen: '[::]:53', more: '0.0.0.0:53' });
  const commands = stateRequests(status).map((request) => {
    const text = JSON.stringify(request);
    // A listener that is activated needs no core command of ours.
    return text.includes('activate') ? 'activate' : commandOf(JSON.parse(text), status);
  });
  const kinds = commands.map((one) => (typeof one === 'string' ? one : one.kind));
  const listener = ['AddListener', 'AddFrontend', 'activate'];
  expect(kinds).toEqual(['AddCluster', 'AddBackend', 'AddBackend', ...listener, ...listener]);
  const { loadBalancing, onBackendRemoved } = clusterSettings();
  expect(commands[0]).toMatchObject({
    settings: { cluster: 'c', loadBalancing, onBackendRemoved },
  });
  expect(commands[1]).toMatchObject({ backend: backendsOf(1)[0] });
  expect(commands[3]).toMatchObject({ config: { address: addressOf('0.0.0.0:53') } });
});

function commandOf(request: object, status: Status = statusOf({})): Command {
  const line = Buffer.from(JSON.stringify({ v: 1, id: 1, ...request }));
  const decoded = decodeRequest(line);
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.problems));
  switch (decoded.request.command) {
    case 'listener udp add':
    case 'frontend udp add':
    case 'cluster add':
    case 'backend add':
    case 'backend drain':
      return coreCommand(decoded.request, status, BOUNDS);
    default:
      throw new Error(`no test of ${decoded.request.command}`);
  }
}

function statusOf({ listen, more }: { listen?: string; more?: string }): Status {
  const backends = backendsOf(1, 2);
  const settings = clusterSettings({ passive: true, backends });
  return {
    generation: 1,
    stopping: false,
    grace: seconds(5),
    listeners: [listen, more]
      .filter((one) => one !== undefined)
      .map((address, index) => ({
        config: listenerConfig({ address: addressOf(address), cluster: 'c' }),
        active: true,
        listener: listenerId(index),
        failure: undefined,
      })),
    clusters: [
      {
        settings: knobsOf(settings),
        backends: backends.map((backend) => ({
          backend,
          health: 'up',
          ejected: false,
          state: 'active',
        })),
      },
    ],
  };
}
