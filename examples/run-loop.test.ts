import { expect, test } from 'vitest';
import {
  checkInvariants,
  flowId,
  formatAddress,
  instant,
  ipv4,
  type UdpManager,
} from '../core/index.ts';
import { newBackends, newMachine } from './new-machine.ts';
import { turn, type World } from './run-loop.ts';

const client = ipv4(0x0a000001, 4_000);
const query = new Uint8Array([1, 2, 3]);
const reply = new Uint8Array([4, 5]);
const backends = newBackends({ high: 3, low: 4 });

test('a query and its reply pass through the loop, and the flow ends with the reply', () => {
  const happened: string[] = [];
  const machine = newMachine({ first: 1, second: 2 });
  const world = recorder(happened);
  ask(machine, query, world);
  turn(machine, { kind: 'BackendDatagram', flow: flowId(0), payload: reply }, instant(5), world);
  checkInvariants(machine);
  expect(happened).toEqual([
    'open 0 to 10.0.0.2:53',
    'to backend on 0: 1,2,3',
    'wake at 30000000',
    'to 10.0.0.1:4000: 4,5',
    'close 0',
    'wake at undefined',
  ]);
  expect(machine.flowCount).toBe(0);
});

test('a query without a reply is closed by the timer, after thirty seconds of silence', () => {
  const happened: string[] = [];
  const machine = newMachine({ first: 1, second: 2 });
  const world = recorder(happened);
  ask(machine, query, world);
  happened.length = 0;
  turn(machine, 'timer', instant(29_999_999), world);
  turn(machine, 'timer', instant(30_000_000), world);
  checkInvariants(machine);
  expect(happened).toEqual(['wake at 30000000', 'close 0', 'wake at undefined']);
});

test('what is dropped reaches nobody', () => {
  const happened: string[] = [];
  ask(newMachine({ first: 1, second: 2 }), new Uint8Array(), recorder(happened));
  expect(happened).toEqual(['wake at undefined']);
});

test('the backup is lent when the other backend is down, and nothing else must be told', () => {
  const happened: string[] = [];
  const set = newBackends({ high: 3, low: 4 });
  set.setHealth(ipv4(0x0a000002, 53), false);
  const input = { kind: 'ClientDatagram', src: client, payload: query, backends: set } as const;
  turn(newMachine({ first: 1, second: 2 }), input, instant(0), recorder(happened));
  expect(happened[0]).toBe('open 0 to 10.0.0.3:53');
});

function ask(machine: UdpManager, payload: Uint8Array, world: World): void {
  turn(machine, { kind: 'ClientDatagram', src: client, payload, backends }, instant(0), world);
}

function recorder(happened: string[]): World {
  return {
    open: (flow, { address }) => happened.push(`open ${flow} to ${formatAddress(address)}`),
    toBackend: (flow, _, payload) => happened.push(`to backend on ${flow}: ${payload.join()}`),
    toClient: (to, payload) => happened.push(`to ${formatAddress(to)}: ${payload.join()}`),
    close: (flow) => happened.push(`close ${flow}`),
    wakeAt: (at) => happened.push(`wake at ${at}`),
  };
}
