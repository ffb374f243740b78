/**
 * A and AAAA from one socket: two questions at one instant, and both answers have to get through, also where an answer ends a
 * flow, where backends answer twice, and where an answer comes when the flow has all it waits for.
 */
import { milliseconds } from '../../core/index.ts';
import {
  backendList,
  chaos,
  configOf,
  crowd,
  drawBackends,
  drawCluster,
  drawListener,
  proxyOf,
  span,
  twins,
  worldOf,
  type WorldScenario,
} from '../../sim/index.ts';

const CLIENTS = 10;
const BACKENDS = 3;

export const TWO_ANSWERS: WorldScenario = {
  kind: 'world',
  name: 'two-answers',
  purpose: 'two questions at a time from one socket: each has its answers, by request or by flow',
  reaches: [
    'a second answer reaches its client',
    'a flow ends with its last answer',
    'an upstream socket hears a stranger',
    'a link duplicates a packet',
    'a link reorders packets',
  ],
  plan: ({ config }) => {
    const answers = config.between('answers', 1, 3);
    const cluster = {
      ...drawCluster(config),
      backends: drawBackends(config, backendList(BACKENDS)),
      responses: config.pick('responses', [answers, 2 * answers]),
      responsesPerRequest: config.chance('by request', 2, 3),
      lateReplyGrace: milliseconds(config.pick('grace', [0, 20, 200])),
    };
    return {
      spec: worldOf(
        { clients: CLIENTS, backends: BACKENDS, manner: { answers } },
        { proxies: [proxyOf(configOf(cluster, drawListener(config)))] },
      ),
      cast: {
        ...crowd('resolver', CLIENTS, twins({ burst: 2, rest: span(20, 500) })),
        chaos: chaos(config, {
          always: ['duplication', 'reordering'],
          families: ['twice', 'late', 'mute', 'slow', 'elsewhere'],
          every: span(20, 250),
        }),
      },
    };
  },
};
