/**
 * Fewer local ports than clients, from one source address or from two: whoever gets none is shed and counted, the machine is
 * not asked again for every datagram, and ports that come back serve again.
 */
import {
  backendList,
  chaos,
  configOf,
  crowd,
  drawBackends,
  drawCluster,
  drawListener,
  drawPlaneDelay,
  proxyAddress,
  proxyOf,
  resolver,
  span,
  worldOf,
  type WorldScenario,
} from '../../sim/index.ts';

const CLIENTS = 24;
const BACKENDS = 2;
const HOSTS = [proxyAddress(0), proxyAddress(40)];

export const PORT_EXHAUSTION: WorldScenario = {
  kind: 'world',
  name: 'port-exhaustion',
  purpose: 'fewer local ports than flows, from one source address or several',
  reaches: [
    'no local port is left',
    'a flow ends for want of a socket',
    'a source address is not there',
    'a client is answered after healing',
  ],
  plan: ({ config }) => {
    const sources = config.pick('sources', [[], HOSTS.slice(0, 1), HOSTS]);
    const cluster = {
      ...drawCluster(config),
      backends: drawBackends(config, backendList(BACKENDS)),
      upstreamSources: sources,
      responses: config.pick('responses', [0, 1, 1]),
    };
    const low = 40_000;
    const high = low + config.between('ports', 8, 20);
    const proxy = proxyOf(configOf(cluster, drawListener(config)), {
      planeDelay: drawPlaneDelay(config),
      shape: { name: 'proxy0', addresses: HOSTS, ephemeralPorts: { low, high } },
    });
    return {
      spec: worldOf({ clients: CLIENTS, backends: BACKENDS }, { proxies: [proxy] }),
      cast: {
        ...crowd('client', CLIENTS, resolver({ burst: 2, rest: span(40, 600) })),
        chaos: chaos(config, {
          always: ['ports', 'absent'],
          families: ['crash', 'late', 'mute', 'timers'],
          every: span(30, 300),
        }),
      },
    };
  },
};
