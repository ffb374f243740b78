/**
 * Conversations that pause: longer than a probe takes, mostly shorter than a flow may be idle, now and then longer. Some keep
 * their flow open with empty datagrams. Through all of it a flow keeps its backend, and its socket.
 */
import {
  backendList,
  chaos,
  chatter,
  configOf,
  crowd,
  drawBackends,
  drawCluster,
  drawHealth,
  drawListener,
  drawPlaneDelay,
  drawSources,
  phasesOf,
  proxyAddress,
  proxyOf,
  resolver,
  span,
  worldOf,
  type WorldScenario,
} from '../../sim/index.ts';

const TALKERS = 8;
const KEEPERS = 6;
const BACKENDS = 3;

export const LONG_LIVED: WorldScenario = {
  kind: 'world',
  name: 'long-lived',
  purpose: 'conversations with pauses around the idle time, some kept alive by empty datagrams',
  reaches: [
    'a flow ends idle',
    'an empty datagram reaches a backend',
    'a client is answered after healing',
    'a source address is not there',
  ],
  plan: ({ config }) => {
    const cluster = {
      ...drawCluster(config),
      backends: drawBackends(config, backendList(BACKENDS)),
      health: drawHealth(config),
      forwardEmptyDatagrams: config.chance('empty', 3, 4),
      upstreamSources: drawSources(config, [proxyAddress(0), proxyAddress(40)]),
    };
    const proxy = proxyOf(configOf(cluster, drawListener(config)), {
      planeDelay: drawPlaneDelay(config),
      shape: { name: 'proxy0', addresses: [proxyAddress(0), proxyAddress(40)] },
    });
    return {
      spec: worldOf(
        { clients: TALKERS + KEEPERS, backends: BACKENDS },
        { proxies: [proxy], phases: phasesOf(2_000, 6_000, 8_000, 6_000) },
      ),
      cast: {
        ...crowd('talker', TALKERS, resolver({ burst: 2, rest: span(150, 2_200) })),
        ...crowd(
          'keeper',
          KEEPERS,
          chatter({ bytes: [0, 0, 40, 700], burst: 2, rest: span(100, 900) }),
          TALKERS,
        ),
        chaos: chaos(config, {
          families: ['slow', 'loss', 'stalls', 'timers', 'standstill', 'absent', 'mute'],
          every: span(200, 1_500),
          lasts: span(100, 800),
        }),
      },
    };
  },
};
