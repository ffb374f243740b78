/** Reloads in the middle of traffic, of failures and of flows that linger or lost their backend: nothing is lost or kept. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { ControlBench } from '../test/control-bench.ts';
import { addressOf, backendsOf, clusterSettings, listenerConfig } from '../test/plane-bench.ts';
import type { Config, LoadBalancing, OnBackendLoss } from './config.ts';
import { unaccountedDatagrams } from './metrics.ts';
import type { Opened, SendFailed } from './ports.ts';
import { after, milliseconds, seconds } from './time.ts';
import { checkInvariants } from './verify.ts';

test('every datagram ends once and every socket has a flow, whatever is reloaded meanwhile', () => {
  fc.assert(
    fc.property(configs, fc.array(turns, { maxLength: 25, size: 'max' }), (first, plan) => {
      const bench = new ControlBench();
      bench.configure(first);
      for (const turn of plan) play(bench, turn);
      comeToRest(bench);
    }),
    { numRuns: 150 },
  );
});

const losses = fc.constantFrom<OnBackendLoss[]>('pin', 'rebind', 'close');

const clusters = fc
  .record({
    cluster: fc.constantFrom('c', 'd'),
    loadBalancing: fc.constantFrom<LoadBalancing[]>('ROUND_ROBIN', 'HRW', 'MAGLEV', 'LEAST_LOADED'),
    numbers: fc.uniqueArray(fc.integer({ min: 1, max: 4 }), { size: 'max', maxLength: 4 }),
    onBackendRemoved: losses,
    responses: fc.constantFrom(0, 0, 1, 2),
    responsesPerRequest: fc.boolean(),
    requests: fc.constantFrom(0, 0, 1, 2),
    requestsLinger: fc.boolean(),
    lateReplyGrace: fc.constantFrom(milliseconds(0), seconds(1)),
    sendProxyProtocol: fc.boolean(),
    sources: fc.constantFrom<string[][]>([], ['10.5.0.1:0'], ['10.5.0.1:0', '10.5.0.2:0']),
  })
  .map(({ numbers, sources, ...rest }) =>
    clusterSettings({
      ...rest,
      backends: backendsOf(...numbers),
      upstreamSources: sources.map(addressOf),
    }),
  );

const listeners = fc
  .record({
    number: fc.constantFrom(1, 2),
    cluster: fc.constantFrom('c', 'c', 'd', undefined),
    maxFlows: fc.constantFrom(2, 16),
    receiveBuffer: fc.constantFrom(undefined, undefined, undefined, 9_000),
  })
  .map(({ number, ...rest }) =>
    listenerConfig({ ...rest, address: addressOf(`10.0.1.${number}:53`) }),
  );

const configs: fc.Arbitrary<Config> = fc.record({
  grace: fc.constant(seconds(2)),
  listeners: fc.uniqueArray(listeners, { minLength: 1, selector: ({ address }) => address.a }),
  clusters: fc.uniqueArray(clusters, { minLength: 1, selector: ({ cluster }) => cluster }),
});

interface Event {
  readonly kind: 'client' | 'reply' | 'refusal' | 'room' | 'timer';
  /** Of the clients, or of the sockets that were ever opened. */
  readonly which: number;
  readonly size: number;
}

interface Turn {
  readonly events: readonly Event[];
  readonly opens: readonly Opened[];
  readonly fates: readonly (SendFailed['cause'] | undefined)[];
  readonly reload: Config | undefined;
  readonly milliseconds: number;
}

const turns: fc.Arbitrary<Turn> = fc.record({
  events: fc.array(
    fc.record({
      kind: fc.constantFrom<Event['kind'][]>(
        'client',
        'client',
        'reply',
        'refusal',
        'room',
        'timer',
      ),
      which: fc.nat(20),
      size: fc.constantFrom(0, 1, 5),
    }),
    { maxLength: 8, size: 'max' },
  ),
  opens: fc.array(
    fc.constantFrom(undefined, undefined, undefined, 'EMFILE', 'EADDRINUSE', 'EADDRNOTAVAIL'),
    { maxLength: 3 },
  ),
  fates: fc.array(
    fc.constantFrom(undefined, undefined, undefined, undefined, 'blocked', 'refused', 'error'),
    { maxLength: 6 },
  ),
  reload: fc.option(configs, { freq: 3, nil: undefined }),
  milliseconds: fc.constantFrom(0, 1, 20, 400, 1_000, 31_000),
});

function play(bench: ControlBench, turn: Turn): void {
  const { ports, pump } = bench;
  ports.openResults = [...turn.opens];
  ports.fate = (number) => turn.fates[number];
  for (const event of turn.events) happen(bench, event);
  if (turn.reload !== undefined) {
    expect(bench.command({ kind: 'Reload', config: turn.reload })).toMatchObject({ ok: true });
  }
  pump.endTurn();
  check(bench);
  ports.clock = after(ports.clock, milliseconds(turn.milliseconds));
}

function happen(bench: ControlBench, { kind, which, size }: Event): void {
  const { plane, ports, pump } = bench;
  const listener = plane.listeners.all[which % Math.max(1, plane.listeners.all.length)];
  // Most often one that is open.
  const sockets = which % 4 === 0 ? ports.opened : [...ports.open];
  const socket = sockets[which % Math.max(1, sockets.length)];
  if (kind === 'client' && listener !== undefined) {
    const src = addressOf(`10.9.0.1:${1_000 + (which % 5)}`);
    pump.clientDatagram(listener.id, src, undefined, new Uint8Array(size));
  } else if (kind === 'reply' && socket !== undefined) {
    pump.backendDatagram(socket, new Uint8Array(size));
  } else if (kind === 'refusal' && socket !== undefined) pump.refused(socket);
  else if (kind === 'timer') fire(bench);
  else if (kind === 'room') tellOfRoom(bench);
}

/** The timer fires, perhaps early; what was armed is gone. */
function fire({ ports, pump }: ControlBench): void {
  ports.wake = undefined;
  pump.timer();
}

function tellOfRoom({ plane, ports, pump }: ControlBench): void {
  for (const socket of ports.opened) {
    if (ports.watched.delete(socket)) pump.upstreamWritable(socket);
  }
  for (const { id } of plane.listeners.all) {
    if (ports.watched.delete(id)) pump.listenerWritable(id);
  }
}

/** What holds between turns. */
function check({ plane, ports }: ControlBench): void {
  const { all, retired, totals } = plane.listeners;
  expect(totals.forwarded + totals.returned, 'counted as sent').toBe(ports.delivered.length);
  expect(unaccountedDatagrams(retired), 'of what is gone every datagram ended').toBe(0);
  for (const { manager } of all) checkInvariants(manager);
  const open = all.reduce((sum, { counters }) => sum + unaccountedDatagrams(counters), 0);
  expect(open, 'datagrams unaccounted for').toBe(plane.waiting);
  const flows = all.reduce((sum, { manager }) => sum + manager.flowCount, 0);
  expect(plane.flowCount).toBe(flows);
  expect(ports.open.size, 'open upstream sockets').toBe(flows);
  expect(ports.listening.size, 'open listeners').toBe(all.length);
  expect(ports.wake).toBe(plane.pollTimeout()?.at);
}

/** Lets everything end that time ends: then nothing is open, armed or loaded. */
function comeToRest(bench: ControlBench): void {
  const { plane, ports, pump } = bench;
  ports.openResults = [];
  ports.fate = () => undefined;
  tellOfRoom(bench);
  pump.endTurn();
  for (let rounds = 0; ports.wake !== undefined; rounds += 1) {
    expect(rounds, 'wakes that come to nothing').toBeLessThan(100);
    if (ports.wake > ports.clock) ports.clock = ports.wake;
    fire(bench);
    pump.endTurn();
    check(bench);
  }
  expect(plane).toMatchObject({ flowCount: 0, waiting: 0 });
  for (const { backends } of plane.clusters.all) {
    expect(backends.inUse()).toEqual([]);
    for (const backend of backends.backends) expect(backends.flowsOn(backend)).toBe(0);
  }
}
