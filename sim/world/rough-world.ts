/**
 * A world for the tests of oracles: small, and most of what may happen to a datagram happens to some in a few seeds. Not a
 * scenario that anybody should learn from; those are in scenarios/.
 */
import { ipv4, type Address } from '../../core/address.ts';
import type { Command } from '../../core/commands.ts';
import type { ClusterSettings, Config, OnBackendLoss } from '../../core/config.ts';
import { present } from '../../core/assert.ts';
import { healthSettings } from '../../core/health/settings.ts';
import { microseconds, milliseconds } from '../../core/time.ts';
import type { Random } from '../random.ts';
import type { WorldAction } from './actions.ts';
import type { Actor, ActorBody } from './actor.ts';
import {
  backendAddress,
  backendEntry,
  backendList,
  clientAddress,
  clusterOf,
  listenerOf,
  natAddress,
  populationOf,
  privateAddress,
  proxyAddress,
  proxyAddress6,
  proxyOf,
  QUIET_LINK,
} from './builders.ts';
import { independentLoss, type LinkFaults } from './faults.ts';
import type { NatSettings } from './nat.ts';
import type { OsFaults } from './os-faults.ts';
import type { BackendManner } from './spec.ts';
import type { WorldScenario } from './world-scenario.ts';

const BACKENDS = 3;
const CLIENTS = 10;
const FEW = { numerator: 1, denominator: 12 };

const NAT: NatSettings = {
  ip: natAddress(0),
  ports: { first: 20_000, count: 50 },
  idle: milliseconds(200),
  mapping: 'endpoint-independent',
  filtering: 'endpoint-independent',
  rebinding: FEW,
};

export const ROUGH_WORLD: WorldScenario = {
  kind: 'world',
  name: 'rough-world',
  purpose: 'a little of everything, for the tests of oracles',
  reaches: [],
  plan: ({ config: random }) => {
    const people = populationOf({ clients: CLIENTS, backends: BACKENDS });
    const inside = privateAddress(0, 0);
    const config = configFor(random);
    const isDistant = random.choose('distant', 3) === 0;
    const host = people.clientHosts.length;
    return {
      spec: {
        ...people,
        phases: {
          calm: milliseconds(150),
          chaos: milliseconds(700),
          heal: milliseconds(250),
          drain: milliseconds(1_500),
        },
        link: QUIET_LINK,
        proxies: [
          proxyOf(config, {
            planeDelay: isDistant ? { low: microseconds(0), high: milliseconds(3) } : undefined,
            shape: {
              name: 'proxy0',
              addresses: [proxyAddress(0), proxyAddress6(0)],
              batch: random.choose('batch', 2) === 0 ? 1 : 32,
            },
          }),
        ],
        nats: [NAT],
        clientHosts: [...people.clientHosts, { ips: [inside], nat: 0 }],
        clients: [...people.clients, { host, address: inside }],
        withinTolerance: false,
      },
      cast: {
        ...Object.fromEntries(
          Array.from({ length: CLIENTS + 1 }, (_, one) => [`client ${one}`, talker(one)]),
        ),
        spoofer,
        backends: unruly,
        trouble: troublemaker,
        operator: operator(config),
      },
    };
  },
};

function configFor(random: Random): Config {
  const settings: Partial<ClusterSettings> = {
    backends: backendList(BACKENDS),
    loadBalancing: oneOf(random, ['ROUND_ROBIN', 'HRW', 'MAGLEV', 'RANDOM']),
    onBackendDown: oneOf(random, LOSSES),
    onBackendRemoved: oneOf(random, LOSSES),
    sendProxyProtocol: random.choose('proxied', 2) === 0,
    proxyProtocolEveryDatagram: random.choose('every', 2) === 0,
    responses: oneOf(random, [0, 0, 1, 2]),
    requests: oneOf(random, [0, 0, 3]),
    requestsLinger: random.choose('linger', 2) === 0,
    responsesPerRequest: random.choose('per-request', 2) === 0,
    lateReplyGrace: oneOf(random, [microseconds(0), milliseconds(20)]),
    forwardEmptyDatagrams: random.choose('empty', 2) === 0,
    maxFlowsPerIp: oneOf(random, [0, 0, 3]),
    amplification: oneOf(random, [
      { factor: 0, floor: 0 },
      { factor: 2, floor: 60 },
    ]),
    frontTimeout: milliseconds(100),
    backTimeout: milliseconds(60),
    upstreamSources: oneOf(random, [[], [proxyAddress(0)]]),
    health: random.choose('probed', 2) === 0 ? PROBED : undefined,
  };
  const rates = clusterOf({}).rates;
  const strict: Partial<ClusterSettings> = {
    cluster: 'strict',
    rates: {
      ...rates,
      ...oneOf(random, [
        { datagramsPerSecond: 60, datagramsBurst: 4 },
        { newFlowsPerSecond: 20, newFlowsBurst: 3 },
        {},
      ]),
      deny: [{ base: { ...clientAddress(1), port: 0 }, bits: 32 }],
    },
  };
  const maxFlows = oneOf(random, [4, 64]);
  return {
    clusters: [clusterOf(settings), clusterOf({ ...settings, ...strict })],
    listeners: [
      listenerOf({ maxFlows, maxRxDatagramSize: 400 }),
      listenerOf({ address: ipv4(0, 54), maxFlows, cluster: 'strict' }),
    ],
    grace: milliseconds(300),
  };
}

const PROBED = healthSettings({
  mode: 'UDP_PROBE',
  udpProbePayload: Uint8Array.of(1, 2, 3),
  rise: 1,
  fall: 1,
  probeInterval: milliseconds(30),
  probeTimeout: milliseconds(10),
});

const LOSSES: readonly OnBackendLoss[] = ['pin', 'rebind', 'close'];

/** Sends now a few in a row, now one, of all sizes. */
function talker(client: number): ActorBody {
  return async (actor) => {
    while (!actor.isPast('drain')) {
      for (let left = actor.random.between('burst', 1, 4); left > 0; left--) {
        const bytes = oneOf(actor.random, [0, 5, 40, 40, 60, 120, 399, 500]);
        const listener = actor.random.choose('listener', 2);
        act(actor, { kind: 'Send', client, proxy: 0, listener, bytes });
        await actor.sleep(microseconds(oneOf(actor.random, [2, 30, 3_000])));
      }
      if (actor.random.choose('reopen', 10) === 0) act(actor, { kind: 'Reopen', client });
      await actor.pause('rest', milliseconds(1), milliseconds(60));
    }
  };
}

async function spoofer(actor: Actor): Promise<void> {
  while (!actor.isPast('drain')) {
    await actor.pause('spoof', milliseconds(5), milliseconds(40));
    const src = oneOf<Address>(actor.random, [
      backendAddress(0),
      { ...proxyAddress(0), port: 53 },
      { ...proxyAddress(0), port: 54 },
      clientAddress(0, 4_001),
      clientAddress(9, 9_000 + actor.random.choose('port', 9)),
      ipv4(0x0a010001, 0),
    ]);
    const listener = actor.random.choose('listener', 2);
    act(actor, { kind: 'Spoof', host: 0, src, proxy: 0, listener, bytes: 30 });
  }
}

async function unruly(actor: Actor): Promise<void> {
  const manners: readonly Partial<BackendManner>[] = [
    { answers: 0 },
    { answers: 2 },
    { answers: 3 },
    { delay: milliseconds(50) },
    { elsewhere: true },
    { answerBytes: 300 },
    { open: false },
    { open: true, answers: 1, delay: milliseconds(0.3), elsewhere: false, answerBytes: 0 },
  ];
  while (!actor.isPast('heal')) {
    await actor.pause('behave', milliseconds(10), milliseconds(60));
    const backend = actor.random.choose('backend', BACKENDS);
    act(actor, { kind: 'Behave', backend, manner: oneOf(actor.random, manners) });
  }
}

const LINKS: readonly Partial<LinkFaults>[] = [
  { loss: independentLoss(FEW) },
  { duplication: { ratio: FEW, by: { low: microseconds(0), high: milliseconds(2) } } },
  { reordering: { ratio: FEW, by: { low: microseconds(0), high: milliseconds(2) } } },
  { corruption: { ratio: FEW, caught: FEW, ways: ['flip', 'cut', 'extend'] } },
  { mtu: { bytes: 200, icmp: true } },
  { held: true },
];

const HOSTS: readonly Partial<OsFaults>[] = [
  { noBuffers: FEW },
  { lateFailures: FEW },
  { upstreamStalls: FEW },
  { listenerStalls: { numerator: 1, denominator: 60 } },
  { sendRate: 20_000, sendBuffer: 900 },
  { sendRate: 0, sendBuffer: 900 },
  { datagramBytes: 100 },
  { receiveBuffer: 900 },
  { descriptors: 5 },
  { ephemeralPorts: 2 },
  { absent: [proxyAddress(0)] },
  { refusalDelay: milliseconds(5) },
  { wakeLatency: milliseconds(2) },
  { standstill: 'process' },
  { standstill: 'clock' },
];

async function troublemaker(actor: Actor): Promise<void> {
  while (!actor.isPast('chaos')) await actor.sleep(milliseconds(10));
  while (!actor.isPast('heal')) {
    const lasts = milliseconds(actor.random.between('lasts', 5, 80));
    if (actor.random.choose('place', 3) === 0) {
      const number = actor.random.choose('number', BACKENDS);
      const role = oneOf(actor.random, ['client', 'backend', 'proxy'] as const);
      const place = oneOf(actor.random, ['up', 'down'] as const);
      const faults = oneOf(actor.random, LINKS);
      act(actor, { kind: 'LinkFault', host: { role, number }, place, faults, lasts });
    } else {
      act(actor, { kind: 'HostFault', proxy: 0, faults: oneOf(actor.random, HOSTS), lasts });
    }
    if (actor.random.choose('remap', 4) === 0) act(actor, { kind: 'Remap', client: CLIENTS });
    await actor.pause('trouble', milliseconds(5), milliseconds(50));
  }
}

function operator(config: Config): ActorBody {
  return async (actor) => {
    while (!actor.isPast('heal')) {
      await actor.pause('order', milliseconds(20), milliseconds(80));
      if (actor.random.choose('crash', 12) === 0) {
        act(actor, { kind: 'Crash', proxy: 0 });
        await actor.pause('down', milliseconds(1), milliseconds(10));
        act(actor, { kind: 'Start', proxy: 0, config });
      }
      act(actor, { kind: 'Order', proxy: 0, command: orderFor(actor.random, config) });
    }
  };
}

function orderFor(random: Random, config: Config): Command {
  const number = random.choose('backend', BACKENDS);
  const cluster = oneOf(random, ['cluster', 'strict']);
  const about = { cluster, address: backendAddress(number) };
  const listener = { ...present(config.listeners[0], 'it has two').address };
  return oneOf<Command>(random, [
    { kind: 'DrainBackend', ...about, force: true },
    { kind: 'DrainBackend', ...about, deadline: milliseconds(40) },
    { kind: 'DisableBackend', ...about },
    { kind: 'UndrainBackend', ...about },
    { kind: 'RemoveBackend', ...about },
    { kind: 'AddBackend', cluster, backend: backendEntry(number) },
    { kind: 'SetBackends', cluster, backends: backendList(number + 1) },
    { kind: 'UpdateListener', address: listener, patch: { maxFlows: 2 + number * 8 } },
    { kind: 'UpdateListener', address: listener, patch: { maxRxDatagramSize: 100 } },
    { kind: 'AddFrontend', cluster, address: listener },
    { kind: 'RemoveListener', address: listener },
    { kind: 'RemoveCluster', cluster },
    { kind: 'Reload', config },
    { kind: 'Reload', config: configFor(random) },
  ]);
}

function act(actor: Actor, action: WorldAction): void {
  actor.act(action);
}

function oneOf<One>(random: Random, options: readonly One[]): One {
  return present(options[random.choose('one-of', options.length)], 'there are options');
}
