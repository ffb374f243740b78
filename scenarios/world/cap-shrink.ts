/**
 * Caps on flows that become smaller while they are full, for the listener, for each client and for each subnet: whoever is in
 * stays in, nobody new gets in before there is room, and counting never loses anybody.
 */
import {
  backendList,
  chaos,
  configOf,
  crowd,
  drawBackends,
  drawCluster,
  drawListener,
  mover,
  operator,
  patches,
  proxyOf,
  reloads,
  resolver,
  span,
  worldOf,
  type WorldScenario,
} from '../../sim/index.ts';

const CLIENTS = 24;
const BACKENDS = 2;

export const CAP_SHRINK: WorldScenario = {
  kind: 'world',
  name: 'cap-shrink',
  purpose: 'caps per listener, client and subnet shrink and grow while they are full',
  reaches: [
    'a flow is shed at the cap',
    'a flow is shed by its source',
    'a reload changes nothing',
    'a flow ends idle',
  ],
  plan: ({ config }) => {
    const cluster = {
      ...drawCluster(config),
      backends: drawBackends(config, backendList(BACKENDS)),
      maxFlowsPerIp: config.pick('per client', [0, 3, 6]),
      maxFlowsPerSubnet: config.pick('per subnet', [0, 8, 16]),
      responses: config.pick('responses', [0, 0, 1]),
    };
    const listener = { ...drawListener(config), maxFlows: config.between('cap', 16, 48) };
    return {
      spec: worldOf(
        { clients: CLIENTS, clientsPerHost: 8, backends: BACKENDS },
        { proxies: [proxyOf(configOf(cluster, listener))] },
      ),
      cast: {
        ...crowd('client', CLIENTS, resolver({ rest: span(50, 400) })),
        mover: mover('Reopen', CLIENTS, span(5, 60)),
        operator: operator({
          every: span(20, 200),
          jobs: [
            patches(({ random }) => ({ maxFlows: random.between('cap', 1, 40) })),
            reloads((first) => first),
            reloads(({ clusters, ...rest }, { random }) => ({
              ...rest,
              clusters: clusters.map((one) => ({
                ...one,
                maxFlowsPerIp: random.choose('per client', 6),
                maxFlowsPerSubnet: random.choose('per subnet', 12),
                subnetPrefixIpv4: random.pick('prefix', [8, 24, 32]),
              })),
            })),
          ],
        }),
        chaos: chaos(config, { families: ['loss', 'mute', 'timers', 'stalls'] }),
      },
    };
  },
};
