/**
 * Backends and lines that are slow: answers come after their flow ended, queues fill, and what waits for room is dropped by
 * count, not by accident. Balancing by load has something to compare.
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
  drawHealth,
  drawListener,
  proxyOf,
  resolver,
  span,
  worldOf,
  type WorldScenario,
} from '../../sim/index.ts';

const ASKING = 8;
const CHATTING = 4;
const BACKENDS = 3;

export const SLOW_BACKEND: WorldScenario = {
  kind: 'world',
  name: 'slow-backend',
  purpose: 'late answers, full queues and slow lines, under balancing by load',
  reaches: [
    'a queue has no room',
    'a queue of a link is full',
    'a send waits for a closed socket',
    'a datagram is of no flow',
    'the kernel refuses a send',
    'a send fails late',
    'a send never completes',
    'a send is above the path',
    'an upstream socket hears a stranger',
  ],
  plan: ({ config }) => {
    const cluster = {
      ...drawCluster(config),
      backends: drawBackends(config, backendList(BACKENDS)),
      health: config.chance('watched', 1, 2) ? drawHealth(config) : undefined,
      loadBalancing: config.pick('policy', ['LEAST_LOADED', 'POWER_OF_TWO'] as const),
      frontTimeout: milliseconds(config.pick('patience', [60, 200, 800])),
      responses: config.pick('responses', [0, 1]),
      lateReplyGrace: milliseconds(config.pick('grace', [0, 100])),
    };
    const delay = milliseconds(config.pick('delay', [5, 40, 120]));
    return {
      spec: worldOf(
        { clients: ASKING + CHATTING + 1, backends: BACKENDS, manner: { delay } },
        { proxies: [proxyOf(configOf(cluster, drawListener(config)))] },
      ),
      cast: {
        ...crowd('resolver', ASKING, resolver({ rest: span(50, 500) })),
        ...crowd(
          'chatter',
          CHATTING,
          chatter({ bytes: [40, 400, 1_200], burst: 6, rest: span(100, 600) }),
          ASKING,
        ),
        uploader: chatter({ bytes: [1_200], burst: 200, rest: span(200, 500) })(ASKING + CHATTING),
        chaos: chaos(config, {
          always: ['jam', 'late'],
          families: ['congestion', 'no-buffers', 'late-failures', 'stalls', 'small', 'elsewhere'],
          every: span(20, 250),
        }),
      },
    };
  },
};
