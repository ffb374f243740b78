/**
 * IPv6 and IPv4 side by side: a listener on `::` that serves both, or one for each family at the same port, on a host with
 * several addresses, before backends of either family. Everybody is answered from where they asked, under their own name.
 */
import { ipv6, type ListenerConfig } from '../../core/index.ts';
import {
  backendAddress,
  backendAddress6,
  backendEntry,
  chaos,
  clientAddress,
  clientAddress6,
  clusterOf,
  configOf,
  crowd,
  drawBackends,
  drawCluster,
  drawHealth,
  drawListener,
  ECHO_SOON,
  LISTENER_PORT,
  listenerOf,
  mover,
  proxyAddress,
  proxyAddress6,
  proxyOf,
  resolver,
  span,
  worldOf,
  type WorldScenario,
} from '../../sim/index.ts';

const CLIENTS = 12;
const BACKENDS = 4;
const HOSTS = [proxyAddress(0), proxyAddress(40), proxyAddress6(0), proxyAddress6(40)];
const ANY4 = { ...proxyAddress(0), a: 0, port: LISTENER_PORT };
const ANY6 = ipv6([0, 0, 0, 0], LISTENER_PORT);

export const DUAL_STACK: WorldScenario = {
  kind: 'world',
  name: 'dual-stack',
  purpose: 'IPv6 and IPv4 clients of one wildcard listener, or of one each, before mixed backends',
  reaches: [
    'an IPv6 client is answered',
    'an IPv4 client of an IPv6 listener is answered',
    'a backend is told the true client',
    'a client is answered after healing',
  ],
  plan: ({ config }) => {
    const backends = Array.from({ length: BACKENDS }, (_, number) =>
      backendEntry(number, {
        address: number % 2 === 0 ? backendAddress(number) : backendAddress6(number),
      }),
    );
    const cluster = clusterOf({
      ...drawCluster(config),
      backends: drawBackends(config, backends),
      health: config.chance('watched', 1, 2) ? drawHealth(config) : undefined,
      maxFlowsPerIp: config.pick('per client', [0, 8]),
    });
    const wildcard = { ...drawListener(config), address: ANY6 };
    const apart: Partial<ListenerConfig>[] = [
      { ...wildcard, ipv6Only: true },
      { ...wildcard, address: ANY4 },
    ];
    const listeners = (config.chance('apart', 1, 3) ? apart : [wildcard]).map(listenerOf);
    return {
      spec: {
        ...worldOf(
          { clients: 0, backends: 0 },
          {
            proxies: [
              proxyOf(
                { ...configOf({}), clusters: [cluster], listeners },
                { shape: { name: 'proxy0', addresses: HOSTS } },
              ),
            ],
          },
        ),
        clientHosts: [{ ips: [clientAddress(0), clientAddress6(0)], nat: undefined }],
        clients: Array.from({ length: CLIENTS }, (_, number) => ({
          host: 0,
          address:
            number % 2 === 0 ? clientAddress(0, 4_000 + number) : clientAddress6(0, 4_000 + number),
        })),
        backends: backends.map(({ address }) => ({ address, manner: ECHO_SOON })),
      },
      cast: {
        ...crowd('client', CLIENTS, (client) =>
          resolver({
            listeners: [listeners.length === 2 ? (client % 2 === 0 ? 1 : 0) : 0],
            rest: span(30, 400),
          })(client),
        ),
        mover: mover('Reopen', CLIENTS, span(30, 300)),
        chaos: chaos(config, { families: ['crash', 'loss', 'narrow', 'partition', 'duplication'] }),
      },
    };
  },
};
