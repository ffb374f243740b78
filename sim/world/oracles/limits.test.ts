import { expect, test } from 'vitest';
import { listenerId, socketId, type SocketId } from '../../../core/brand.ts';
import { NO_SOURCE_RATES, type ClusterSettings } from '../../../core/config.ts';
import type { Directive } from '../../../core/directives.ts';
import { instant } from '../../../core/time.ts';
import { backendAddress, clientAddress, clusterOf, listenerOf } from '../builders.ts';
import type { History, Told } from '../history.ts';
import { objectionOf, told, turn } from './hand-made.ts';
import { LIMITS_KEPT } from './limits.ts';

const LISTENER = listenerId(0);

test('flows up to the cap of a listener are accepted, and one more is not', () => {
  const begun = directed({ maxFlows: 2 }, {});
  expect(objectionOf(LIMITS_KEPT, [...begun, ...flow(1), ...flow(2)])).toBeUndefined();
  expect(objectionOf(LIMITS_KEPT, [...begun, ...flow(1), ...flow(2), ...flow(3)])).toContain(
    '2 of 2',
  );
});

test('flows above a cap that shrank may stay, and none may come until there is room', () => {
  const shrunk = [...directed({ maxFlows: 3 }, {}), ...flow(1), ...flow(2), ...update(1)];
  expect(objectionOf(LIMITS_KEPT, shrunk)).toBeUndefined();
  expect(objectionOf(LIMITS_KEPT, [...shrunk, closed(1), ...flow(3)])).toContain('1 of 1');
  const roomy = [...shrunk, closed(1), closed(2), ...flow(3)];
  expect(objectionOf(LIMITS_KEPT, roomy)).toBeUndefined();
});

test('a flow that goes on with another socket is not admitted again', () => {
  const full = [...directed({ maxFlows: 1 }, {}), ...flow(1)];
  expect(objectionOf(LIMITS_KEPT, [...full, arrived(1, 0), closed(1), opened(9)])).toBeUndefined();
  expect(objectionOf(LIMITS_KEPT, [...full, arrived(2, 0), closed(1), opened(9)])).toBeUndefined();
  const twice = [...full, arrived(1, 0), closed(1), opened(9), ...flow(2)];
  expect(objectionOf(LIMITS_KEPT, twice)).toContain('1 of 1');
});

test('an address and its subnet hold what they may', () => {
  const two = [...flow(1), ...flow(2)];
  const perIp = directed({}, { maxFlowsPerIp: 1 });
  expect(objectionOf(LIMITS_KEPT, [...perIp, ...two])).toBeUndefined();
  expect(objectionOf(LIMITS_KEPT, [...perIp, ...flow(1), ...flow(2, 0, 1)])).toContain('1 of 1');
  const perSubnet = directed({}, { maxFlowsPerSubnet: 1 });
  expect(objectionOf(LIMITS_KEPT, [...perSubnet, ...two])).toContain('subnet');
  const narrow = directed({}, { maxFlowsPerSubnet: 1, subnetPrefixIpv4: 32 });
  expect(objectionOf(LIMITS_KEPT, [...narrow, ...two])).toBeUndefined();
});

test('new flows come no faster than their rate, and other rates begin anew', () => {
  const rates = { ...NO_SOURCE_RATES, newFlowsPerSecond: 1, newFlowsBurst: 2 };
  const begun = directed({}, { rates });
  const burst = [...flow(1, 0), closed(1), ...flow(2, 0, 1), closed(2)];
  expect(objectionOf(LIMITS_KEPT, [...begun, ...burst, ...flow(3, 999_000, 1)])).toContain(
    '1 flows a second',
  );
  expect(objectionOf(LIMITS_KEPT, [...begun, ...burst, ...flow(3, 1_000_000, 1)])).toBeUndefined();
  const anew = directive({
    kind: 'SetCluster',
    settings: clusterOf({ rates: { ...rates, newFlowsBurst: 3 } }),
  });
  expect(objectionOf(LIMITS_KEPT, [...begun, ...burst, anew, ...flow(3, 0, 1)])).toBeUndefined();
});

test('a flow sends no faster than its rate', () => {
  const rates = { ...NO_SOURCE_RATES, datagramsPerSecond: 10, datagramsBurst: 1 };
  const begun = [...directed({}, { rates }), ...flow(1, 0), sent(1)];
  expect(objectionOf(LIMITS_KEPT, [...begun, arrived(1, 100_000), sent(1)])).toBeUndefined();
  expect(objectionOf(LIMITS_KEPT, [...begun, arrived(1, 50_000), sent(1)])).toContain(
    '10 datagrams',
  );
});

test('datagrams wait at sockets without room only, and not too many', () => {
  const watched = told('DataOutput', {
    process: 1,
    plane: 0,
    output: { kind: 'WatchUpstream', socket: socket(1) },
  });
  const writable = told('DataInput', {
    process: 1,
    plane: 0,
    input: { kind: 'UpstreamWritable', socket: socket(1) },
    now: instant(0),
  });
  expect(objectionOf(LIMITS_KEPT, [watched, turn({ waiting: 64 })])).toBeUndefined();
  expect(objectionOf(LIMITS_KEPT, [watched, turn({ waiting: 65 })])).toContain('65 against 64');
  expect(objectionOf(LIMITS_KEPT, [watched, writable, turn({ waiting: 1 })])).toContain(
    '1 against 0',
  );
});

test('at most so many probes are in flight', () => {
  expect(objectionOf(LIMITS_KEPT, [turn({ probes: 256 })])).toBeUndefined();
  expect(objectionOf(LIMITS_KEPT, [turn({ probes: 257 })])).toContain('257');
});

function directed(listener: { maxFlows?: number }, cluster: Partial<ClusterSettings>): History {
  return [
    directive({ kind: 'SetCluster', settings: clusterOf(cluster) }),
    directive({ kind: 'AddListener', listener: LISTENER, config: listenerOf(listener) }),
  ];
}

function update(maxFlows: number): History {
  return [
    directive({ kind: 'UpdateListener', listener: LISTENER, config: listenerOf({ maxFlows }) }),
  ];
}

function directive(one: Directive): Told {
  const message = { generation: 1, directive: one };
  return told('DataInput', {
    process: 1,
    plane: 0,
    input: { kind: 'Directed', message },
    now: instant(0),
  });
}

/** A new flow on a socket of this number, by a client of that host or, if it is not given, of the same number. */
function flow(number: number, now = 0, host = number): History {
  return [arrived(number, now, host), opened(number)];
}

function arrived(number: number, now: number, host = number): Told {
  const payload = new Uint8Array(4);
  const src = clientAddress(host, 4_000 + number);
  const input = {
    kind: 'ClientArrived',
    listener: LISTENER,
    src,
    local: undefined,
    payload,
  } as const;
  return told('DataInput', { process: 1, plane: 0, input, now: instant(now) }, now);
}

function opened(number: number): Told {
  const output = {
    kind: 'OpenUpstream',
    socket: socket(number),
    backend: backendAddress(0),
    source: undefined,
  } as const;
  return told('DataOutput', { process: 1, plane: 0, output });
}

function closed(number: number): Told {
  return told('DataOutput', {
    process: 1,
    plane: 0,
    output: { kind: 'CloseUpstream', socket: socket(number) },
  });
}

function sent(number: number): Told {
  const payload = new Uint8Array(4);
  const output = {
    kind: 'SendToBackend',
    socket: socket(number),
    header: undefined,
    payload,
  } as const;
  return told('DataOutput', { process: 1, plane: 0, output });
}

function socket(number: number): SocketId {
  return socketId(number, LISTENER);
}
