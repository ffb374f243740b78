/**
 * Clients behind NATs that forget them, by idle time, by chance or all at once: a client comes back from another port, another
 * client gets its old one, and answers to where it was find nobody. No reply may reach the wrong one.
 */
import { milliseconds } from '../../core/index.ts';
import {
  backendList,
  chaos,
  chatter,
  configOf,
  crowd,
  drawBackends,
  drawCluster,
  drawListener,
  mover,
  nattedOf,
  proxyOf,
  resolver,
  span,
  worldOf,
  type WorldScenario,
} from '../../sim/index.ts';

const ASKING = 10;
const CHATTING = 6;
const BACKENDS = 3;

export const NAT_REBIND: WorldScenario = {
  kind: 'world',
  name: 'nat-rebind',
  purpose:
    'clients behind NATs that forget them come back from other ports, and get others’ old ones',
  reaches: [
    'a NAT gives another port',
    'a NAT has forgotten a client',
    'a NAT has no port left',
    'a client is answered after healing',
  ],
  plan: ({ config }) => {
    const cluster = {
      ...drawCluster(config),
      backends: drawBackends(config, backendList(BACKENDS)),
      loadBalancing: config.pick('policy', ['HRW', 'MAGLEV', 'ROUND_ROBIN'] as const),
      affinityWithPort: config.chance('by port', 1, 3),
      maxFlowsPerIp: config.pick('per address', [0, 64]),
    };
    const kind = {
      ports: { first: 20_000, count: config.pick('ports', [6, 20, 1_000]) },
      idle: milliseconds(config.pick('idle', [60, 300, 5_000])),
      filtering: config.pick('filtering', ['endpoint-independent', 'endpoint-dependent'] as const),
      rebinding: { numerator: 1, denominator: config.pick('rebinding', [5, 40]) },
    };
    const nats = nattedOf(
      [
        { ...kind, mapping: 'endpoint-independent' },
        { ...kind, mapping: 'endpoint-dependent' },
      ],
      { hosts: 2, clientsPerHost: 4 },
    );
    return {
      spec: worldOf(
        { clients: ASKING + CHATTING, backends: BACKENDS },
        { proxies: [proxyOf(configOf(cluster, drawListener(config)))], ...nats },
      ),
      cast: {
        ...crowd('resolver', ASKING, resolver({ burst: 2, rest: span(40, 500) }, { retries: 2 })),
        ...crowd('chatter', CHATTING, chatter({ burst: 3, rest: span(20, 300) }), ASKING),
        nat: mover('Remap', ASKING + CHATTING, span(5, 80)),
        phone: mover('Reopen', ASKING + CHATTING, span(50, 300)),
        chaos: chaos(config, { families: ['remap', 'slow', 'late', 'reordering'] }),
      },
    };
  },
};
