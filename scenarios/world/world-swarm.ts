/**
 * Everything at once, a part of it in each seed: clients of every kind, an operator with any job, and any family of faults.
 * What no other scenario thought of is met here.
 */
import { milliseconds } from '../../core/index.ts';
import {
  BACKEND_FAMILIES,
  backendList,
  chaos,
  chatter,
  CLIENT_FAMILIES,
  configOf,
  crashes,
  crowd,
  CUT_FAMILIES,
  cycles,
  disables,
  drains,
  drawBackends,
  drawCluster,
  drawHealth,
  drawListener,
  drawPlaneDelay,
  drawSources,
  drawWorkers,
  edits,
  HOST_FAMILIES,
  kills,
  LINK_FAMILIES,
  logger,
  looks,
  operator,
  POWER_FAMILIES,
  proxyAddress,
  proxyOf,
  resolver,
  restarts,
  reweighs,
  span,
  twins,
  undrains,
  worldOf,
  type WorldScenario,
} from '../../sim/index.ts';

const EACH = 4;
const KINDS = [resolver, chatter, logger, twins];
const JOBS = [
  drains(span(10, 400)),
  undrains,
  disables,
  reweighs,
  edits,
  cycles,
  kills,
  looks,
  crashes,
  restarts('SoftStop', span(50, 400)),
];

export const WORLD_SWARM: WorldScenario = {
  kind: 'world',
  name: 'world-swarm',
  purpose: 'each seed has some clients, some jobs of an operator and some faults of all there are',
  reaches: ['a client is answered after healing', 'a flow ends idle'],
  plan: ({ config }) => {
    const backends = config.between('backends', 1, 4);
    const cluster = {
      ...drawCluster(config),
      backends: drawBackends(config, backendList(backends)),
      health: config.chance('watched', 1, 2) ? drawHealth(config) : undefined,
      responses: config.pick('responses', [0, 0, 1]),
      requests: config.pick('requests', [0, 0, 5]),
      maxFlowsPerIp: config.pick('per client', [0, 0, 6]),
      upstreamSources: drawSources(config, [proxyAddress(0)]),
    };
    const settings = configOf(cluster, { ...drawListener(config), bindRetry: milliseconds(20) });
    const kinds = KINDS.filter((_, kind) => config.chance(`kind ${kind}`, 2, 3));
    const jobs = JOBS.filter((_, job) => config.chance(`job ${job}`, 1, 3));
    return {
      spec: worldOf(
        { clients: EACH * KINDS.length, backends },
        {
          proxies: [
            proxyOf(settings, {
              planeDelay: drawPlaneDelay(config),
              workers: drawWorkers(config, 20),
            }),
          ],
        },
      ),
      cast: {
        ...Object.assign(
          {},
          ...kinds.map((kind, number) =>
            crowd(`kind ${number}`, EACH, kind({ burst: 3, rest: span(30, 500) }), EACH * number),
          ),
        ),
        operator: operator({ jobs: [looks, ...jobs], every: span(20, 400) }),
        chaos: chaos(config, {
          families: [
            ...LINK_FAMILIES,
            ...CUT_FAMILIES,
            ...HOST_FAMILIES,
            ...BACKEND_FAMILIES,
            ...POWER_FAMILIES,
            ...CLIENT_FAMILIES,
          ],
          percent: 20,
        }),
      },
    };
  },
};
