/**
 * Backends that refuse: ICMP comes back to sockets of flows, at once or with the next send, for the datagram before. A refusal
 * is a hint, never the end of a flow; enough of them from enough flows take a backend out, and it returns.
 */
import {
  backendList,
  chaos,
  chatter,
  configOf,
  crowd,
  disables,
  drawBackends,
  drawCluster,
  drawHealth,
  drawListener,
  operator,
  phasesOf,
  proxyOf,
  resolver,
  span,
  undrains,
  worldOf,
  type WorldScenario,
} from '../../sim/index.ts';

const ASKING = 8;
const CHATTING = 6;
const BACKENDS = 3;

export const ICMP_STORM: WorldScenario = {
  kind: 'world',
  name: 'icmp-storm',
  purpose: 'refusals from backends, seen by polls and by sends: hints, and evidence in numbers',
  reaches: [
    'a packet finds a closed port',
    'a refusal is heard',
    'traffic takes a backend out',
    'a backend returns when its time is over',
    'a backend returns because it is the last',
    'a client is answered after healing',
  ],
  plan: ({ config }) => {
    const cluster = {
      ...drawCluster(config),
      backends: drawBackends(config, backendList(BACKENDS)),
      health: config.chance('watched', 1, 3) ? drawHealth(config) : undefined,
      passive: config.chance('passive', 5, 6),
    };
    return {
      spec: worldOf(
        { clients: ASKING + CHATTING, backends: BACKENDS },
        {
          proxies: [proxyOf(configOf(cluster, drawListener(config)))],
          phases: phasesOf(500, 5_000, 12_000, 5_000),
        },
      ),
      cast: {
        ...crowd('resolver', ASKING, resolver({ rest: span(150, 1_500) })),
        ...crowd('chatter', CHATTING, chatter({ burst: 4, rest: span(150, 1_500) }), ASKING),
        operator: operator({ jobs: [disables, undrains], every: span(400, 1_500) }),
        chaos: chaos(config, {
          always: ['crash', 'refusal-delay'],
          families: ['power', 'slow', 'loss', 'duplication'],
          every: span(20, 500),
          lasts: span(100, 2_500),
        }),
      },
    };
  },
};
