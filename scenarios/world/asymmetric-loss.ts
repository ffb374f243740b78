/**
 * One direction works and the other does not: proxies that are heard by nobody, backends that hear and are not heard, clients
 * whose answers are lost. Silence is not death, and no half of a link may look like the whole.
 */
import {
  backendList,
  chaos,
  configOf,
  crowd,
  drawBackends,
  drawCluster,
  drawHealth,
  drawListener,
  phasesOf,
  proxyOf,
  resolver,
  span,
  worldOf,
  type WorldScenario,
} from '../../sim/index.ts';

const CLIENTS = 12;
const BACKENDS = 3;

export const ASYMMETRIC_LOSS: WorldScenario = {
  kind: 'world',
  name: 'asymmetric-loss',
  purpose: 'losses and partitions of one direction: what is heard is not what is answered',
  reaches: [
    'a link loses a packet',
    'a partition keeps a packet',
    'a link corrupts a packet',
    'a checksum fails',
    'a link is too narrow',
    'a backend is told the true client',
    'a client is answered after healing',
  ],
  plan: ({ config }) => {
    const cluster = {
      ...drawCluster(config),
      backends: drawBackends(config, backendList(BACKENDS)),
      health: config.chance('watched', 2, 3) ? drawHealth(config) : undefined,
      sendProxyProtocol: config.chance('headers', 3, 4),
      proxyProtocolEveryDatagram: true,
    };
    return {
      spec: worldOf(
        { clients: CLIENTS, clientsPerHost: 4, backends: BACKENDS },
        {
          proxies: [proxyOf(configOf(cluster, drawListener(config)))],
          phases: phasesOf(300, 2_500, 2_000, 4_500),
        },
      ),
      cast: {
        ...crowd('client', CLIENTS, resolver({ bytes: [40, 200, 600], rest: span(40, 500) })),
        chaos: chaos(config, {
          always: ['loss', 'cut'],
          families: ['partition', 'split', 'corruption', 'narrow', 'small', 'hold', 'reordering'],
          every: span(10, 200),
          lasts: span(20, 500),
        }),
      },
    };
  },
};
