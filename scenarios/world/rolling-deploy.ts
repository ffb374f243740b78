/**
 * One backend after the other is drained, switched off, installed anew and let back in, as a deployment does it: whoever has
 * finished by the deadline notices nothing, and nothing new goes where a drain has begun.
 */
import {
  backendList,
  configOf,
  chatter,
  crowd,
  deploys,
  drawBackends,
  drawCluster,
  drawHealth,
  drawListener,
  drawPlaneDelay,
  looks,
  operator,
  phasesOf,
  proxyOf,
  resolver,
  span,
  worldOf,
  type WorldScenario,
} from '../../sim/index.ts';

const SHORT = 8;
const LONG = 4;
const BACKENDS = 4;

export const ROLLING_DEPLOY: WorldScenario = {
  kind: 'world',
  name: 'rolling-deploy',
  purpose: 'backends are drained with a deadline, replaced and let back in, one after the other',
  reaches: [
    'a drain ends without a flow',
    'a drain deadline cuts a flow',
    'a flow goes on with another backend',
    'an operator sees a live flow',
  ],
  plan: ({ config }) => {
    const cluster = {
      ...drawCluster(config),
      backends: drawBackends(config, backendList(BACKENDS)),
      health: config.chance('watched', 1, 2) ? drawHealth(config) : undefined,
      responses: config.pick('responses', [0, 1]),
    };
    const proxy = proxyOf(configOf(cluster, drawListener(config)), {
      planeDelay: drawPlaneDelay(config),
    });
    return {
      spec: worldOf(
        { clients: SHORT + LONG, backends: BACKENDS },
        { proxies: [proxy], phases: phasesOf(300, 2_500, 1_500, 5_000) },
      ),
      cast: {
        ...crowd('short', SHORT, resolver({ rest: span(30, 400) })),
        ...crowd('long', LONG, chatter({ rest: span(20, 120) }), SHORT),
        deployment: deploys(BACKENDS, span(40, 500)),
        watcher: operator({ jobs: [looks], every: span(100, 400) }),
      },
    };
  },
};
