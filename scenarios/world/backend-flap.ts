/**
 * Backends that come and go faster than hysteresis likes, seen by probes, by refusals and by missing answers: nobody is
 * forgotten for ever, and nothing new goes to one that is out.
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
  drawPlaneDelay,
  phasesOf,
  proxyOf,
  resolver,
  span,
  worldOf,
  type WorldScenario,
} from '../../sim/index.ts';

const CLIENTS = 12;

export const BACKEND_FLAP: WorldScenario = {
  kind: 'world',
  name: 'backend-flap',
  purpose: 'backends come and go: probes and traffic take them out and bring them back',
  reaches: [
    'probes take a backend out',
    'probes bring a backend back',
    'traffic takes a backend out',
    'a backend returns when its time is over',
    'no backend is available',
    'a cluster recovers',
    'a flow goes on with another backend',
    'a flow ends with its backend',
  ],
  plan: ({ config }) => {
    const backends = config.between('backends', 1, 4);
    const cluster = {
      ...drawCluster(config),
      backends: drawBackends(config, backendList(backends)),
      health: config.chance('watched', 1, 2) ? drawHealth(config) : undefined,
      exchange: 'request-response' as const,
      passive: true,
    };
    const proxy = proxyOf(configOf(cluster, drawListener(config)), {
      planeDelay: drawPlaneDelay(config),
    });
    return {
      spec: worldOf(
        { clients: CLIENTS, backends },
        { proxies: [proxy], phases: phasesOf(1_000, 5_000, 13_000, 5_000) },
      ),
      cast: {
        ...crowd('client', CLIENTS, resolver({ burst: 3, rest: span(100, 1_800) })),
        chaos: chaos(config, {
          always: ['crash'],
          families: ['mute', 'power', 'late', 'cut'],
          every: span(20, 600),
          lasts: span(50, 2_500),
        }),
      },
    };
  },
};
