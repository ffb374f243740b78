/**
 * Time misbehaves: timers early, late and together, processes that stand still while the world goes on, machines that sleep
 * and wake with a clock that did not move. Deadlines are kept by the clock, never by the number of wake-ups.
 */
import { instant } from '../../core/index.ts';
import {
  backendList,
  chaos,
  configOf,
  crowd,
  drawBackends,
  drawCluster,
  drawHealth,
  drawListener,
  drawPlaneDelay,
  proxyAddress,
  proxyOf,
  resolver,
  span,
  worldOf,
  type WorldScenario,
} from '../../sim/index.ts';

const CLIENTS = 14;
const BACKENDS = 2;

export const CLOCK_JUMP: WorldScenario = {
  kind: 'world',
  name: 'clock-jump',
  purpose: 'timers early, late and together; processes and machines that stand still',
  reaches: [
    'a clock stands still',
    'a process stands still',
    'a machine sleeps through a datagram',
    'a receive buffer overflows',
    'a flow ends idle',
  ],
  plan: ({ config }) => {
    const cluster = {
      ...drawCluster(config),
      backends: drawBackends(config, backendList(BACKENDS)),
      health: drawHealth(config),
    };
    const listener = { ...drawListener(config), receiveBuffer: 4_096 };
    const proxy = proxyOf(configOf(cluster, listener), {
      planeDelay: drawPlaneDelay(config),
      shape: {
        name: 'proxy0',
        addresses: [proxyAddress(0)],
        origin: instant(config.pick('origin', [0, 1, 4_294_967_295_000, 4_294_966_000_000])),
      },
    });
    return {
      spec: worldOf({ clients: CLIENTS, backends: BACKENDS }, { proxies: [proxy] }),
      cast: {
        ...crowd('client', CLIENTS, resolver({ burst: 3, rest: span(30, 450) })),
        chaos: chaos(config, {
          always: ['clock', 'standstill'],
          families: ['timers', 'lag', 'deaf', 'jam', 'mute'],
          lasts: span(1, 400),
        }),
      },
    };
  },
};
