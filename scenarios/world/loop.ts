/**
 * Two proxies, each with the other among its backends: a datagram that one gives to the other may come back, and a single one
 * with a lying source starts it. It must die out: at a refused source, at a cap on flows, or in the wear of idle times.
 */
import { milliseconds, type Address } from '../../core/index.ts';
import {
  anybody,
  backendEntry,
  configOf,
  crowd,
  drawCluster,
  drawListener,
  flood,
  LISTENER_PORT,
  proxyAddress,
  proxyOf,
  resolver,
  span,
  worldOf,
  type Actor,
  type ProxySpec,
  type Streams,
  type WorldScenario,
} from '../../sim/index.ts';

const CLIENTS = 4;

export const LOOP: WorldScenario = {
  kind: 'world',
  name: 'loop',
  purpose: 'a spoofed datagram between two proxies that have each other as backends dies out',
  reaches: [
    'a datagram that would circle is refused',
    'a header of a client is refused',
    'a flow is shed at the cap',
    'a flow ends idle',
  ],
  plan: ({ config }) => ({
    spec: worldOf(
      { clients: CLIENTS, backends: 1 },
      { proxies: [0, 1].map((number) => proxyBefore(number, config)) },
    ),
    cast: {
      ...crowd('client', CLIENTS, resolver({ rest: span(100, 600) })),
      liar: flood({ sources: lies, every: span(150, 500), bytes: [12, 40] }),
    },
  }),
};

/** Its backends: the other proxy, and in some seeds somebody who really answers. */
function proxyBefore(number: number, config: Streams['config']): ProxySpec {
  const other = backendEntry(0, { id: 'other', address: listenerAddress(1 - number) });
  const own = config.fork(`proxy ${number}`);
  const cluster = {
    ...drawCluster(own),
    backends: config.chance('a real one', 1, 2) ? [other, backendEntry(0)] : [other],
    sendProxyProtocol: config.fork('headers').chance('on', 1, 3),
    frontTimeout: milliseconds(300),
    backTimeout: milliseconds(300),
    // Where a backend may be a client, two who have each other agreed to it: that circles for as long as they let it.
    allowBackendAsClient: false,
  };
  const address = listenerAddress(number);
  return proxyOf(configOf(cluster, { ...drawListener(own), address, maxFlows: 24 }), { number });
}

function listenerAddress(number: number): Address {
  return { ...proxyAddress(number), port: LISTENER_PORT };
}

/** Of anybody, of the proxy that is asked, and of the other one. */
function lies({ random }: Actor): Address {
  return random.pick('whose', [anybody(random, 4), listenerAddress(0), listenerAddress(1)]);
}
