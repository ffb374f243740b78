import { expect, test } from 'vitest';
import {
  checkInvariants,
  flowId,
  formatAddress,
  instant,
  ipv4,
  NO_CLUSTER,
  PLACEMENT_SEED,
  UdpManager,
  type Backend,
  type BackendSource,
} from '../core/index.ts';
import { turn, type World } from './run-loop.ts';

const client = ipv4(0x0a000001, 4_000);
const backend: Backend = {
  id: 'b',
  address: ipv4(0x0a000002, 53),
  weight: 100,
  backup: false,
};
const backends: BackendSource = { select: () => backend };
const query = new Uint8Array([1, 2, 3]);
const reply = new Uint8Array([4, 5]);

test('a query, its reply and thirty seconds of silence pass through the loop', () => {
  const happened: string[] = [];
  const manager = newManager();
  const world = recorder(happened);
  turn(
    manager,
    { kind: 'ClientDatagram', src: client, payload: query, backends },
    instant(0),
    world,
  );
  turn(manager, { kind: 'BackendDatagram', flow: flowId(0), payload: reply }, instant(5), world);
  checkInvariants(manager);
  turn(manager, 'timer', instant(30_000_005), world);
  checkInvariants(manager);
  expect(happened).toEqual([
    'open 0 to 10.0.0.2:53',
    'to backend on 0: 1,2,3',
    'wake at 30000000',
    'to 10.0.0.1:4000: 4,5',
    'wake at 30000005',
    'close 0',
    'wake at undefined',
  ]);
  expect(manager.flowCount).toBe(0);
});

test('what is dropped reaches nobody', () => {
  const happened: string[] = [];
  const empty = new Uint8Array();
  turn(
    newManager(),
    { kind: 'ClientDatagram', src: client, payload: empty, backends },
    instant(0),
    recorder(happened),
  );
  expect(happened).toEqual(['wake at undefined']);
});

function newManager(): UdpManager {
  return new UdpManager({
    config: { ...NO_CLUSTER, cluster: 'dns' },
    maxFlows: 10,
    maxRxDatagramSize: 1_500,
    placementSeed: PLACEMENT_SEED,
    tableSeed: { first: 1, second: 2 },
  });
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
