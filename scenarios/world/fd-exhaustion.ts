/**
 * A process without descriptors: flows and probes compete for the last ones. New flows are refused for a while, live ones
 * stay, a probe that was not tried says nothing of its backend, and nothing leaks.
 */
import { milliseconds } from '../../core/index.ts';
import {
  backendList,
  chaos,
  configOf,
  crashes,
  crowd,
  cycles,
  drawBackends,
  drawCluster,
  drawHealth,
  drawListener,
  operator,
  proxyAddress,
  proxyOf,
  resolver,
  span,
  worldOf,
  type WorldScenario,
} from '../../sim/index.ts';

const CLIENTS = 24;
const BACKENDS = 3;

export const FD_EXHAUSTION: WorldScenario = {
  kind: 'world',
  name: 'fd-exhaustion',
  purpose: 'flows, listeners and probes compete for too few descriptors',
  reaches: [
    'the kernel refuses a descriptor',
    'a flow is shed at the cap',
    'a listener does not open',
    'a listener opens at last',
    'a client is answered after healing',
  ],
  plan: ({ config }) => {
    const cluster = {
      ...drawCluster(config),
      backends: drawBackends(config, backendList(BACKENDS)),
      health: drawHealth(config),
    };
    const listener = { ...drawListener(config), bindRetry: milliseconds(20) };
    const descriptors = config.between('descriptors', 12, 20);
    const proxy = proxyOf(configOf(cluster, listener), {
      shape: { name: 'proxy0', addresses: [proxyAddress(0)], descriptors },
    });
    return {
      spec: worldOf({ clients: CLIENTS, backends: BACKENDS }, { proxies: [proxy] }),
      cast: {
        ...crowd('client', CLIENTS, resolver({ rest: span(50, 600) })),
        operator: operator({ jobs: [cycles, cycles, crashes], every: span(50, 500) }),
        chaos: chaos(config, {
          always: ['descriptors'],
          families: ['ports', 'occupied', 'mute', 'crash'],
          every: span(20, 200),
        }),
      },
    };
  },
};
