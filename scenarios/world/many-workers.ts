/**
 * Several data planes behind one address and one control plane, which hear of each other late: reloads and drains reach all
 * and have one outcome, and whatever is granted to all is never granted twice.
 */
import { milliseconds, type Config } from '../../core/index.ts';
import {
  adds,
  BACKEND_FAMILIES,
  backendList,
  chaos,
  chatter,
  configOf,
  crashes,
  crowd,
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
  listenerOf,
  looks,
  mover,
  operator,
  patches,
  previews,
  proxyAddress,
  proxyOf,
  reloads,
  resolver,
  restarts,
  reweighs,
  span,
  undrains,
  worldOf,
  type Actor,
  type WorldScenario,
} from '../../sim/index.ts';

const SHORT = 12;
const LONG = 8;
const BACKENDS = 3;

export const MANY_WORKERS: WorldScenario = {
  kind: 'world',
  name: 'many-workers',
  purpose:
    'two to four data planes share the work of one process, through reloads, drains and stops',
  reaches: [
    'a client is answered after healing',
    'a drain ends without a flow',
    'a reload changes many things',
    'an operator sees a live flow',
    'a stop waits for every flow',
    'several planes serve one listener',
  ],
  plan: ({ config }) => {
    const cluster = {
      ...drawCluster(config),
      backends: drawBackends(config, backendList(BACKENDS)),
      health: config.chance('watched', 1, 2) ? drawHealth(config) : undefined,
      responses: config.pick('responses', [0, 0, 1]),
      maxFlowsPerIp: config.pick('per client', [0, 0, 6]),
      upstreamSources: drawSources(config, [proxyAddress(0)]),
    };
    const first = {
      ...configOf(cluster, { ...drawListener(config), bindRetry: milliseconds(20) }),
      grace: milliseconds(config.pick('grace', [50, 300, 1_000])),
    };
    const proxy = proxyOf(first, {
      planeDelay: drawPlaneDelay(config),
      workers: drawWorkers(config),
    });
    return {
      spec: worldOf({ clients: SHORT + LONG, backends: BACKENDS }, { proxies: [proxy] }),
      cast: {
        ...crowd('short', SHORT, resolver({ rest: span(20, 200) })),
        ...crowd('long', LONG, chatter({ rest: span(10, 150) }), SHORT),
        mover: mover('Reopen', SHORT + LONG, span(50, 300)),
        operator: operator({ jobs: JOBS, every: span(10, 150) }),
        colleague: operator({ jobs: [looks, kills, previews(variant)], every: span(20, 200) }),
        chaos: chaos(config, {
          families: [...LINK_FAMILIES, ...HOST_FAMILIES, ...BACKEND_FAMILIES],
          percent: 15,
        }),
      },
    };
  },
};

const JOBS = [
  drains(span(10, 400)),
  drains(span(200, 2_000)),
  undrains,
  disables,
  reweighs,
  edits,
  adds,
  cycles,
  reloads(variant),
  patches(({ random }) => ({ maxFlows: random.pick('cap', [0, 3, 16, 256]) })),
  crashes,
  restarts('SoftStop', span(50, 500)),
  restarts('HardStop', span(1, 50)),
];

/** Another listener beside the first, or not; other limits for it, and some other cluster. */
function variant({ clusters, listeners, grace }: Config, { random }: Actor): Config {
  const another = listenerOf({ address: { ...proxyAddress(0), port: 54 } });
  const [first, ...others] = listeners;
  const kept =
    first === undefined ? [] : [{ ...first, maxFlows: random.pick('cap', [5, 64, 256]) }];
  return {
    grace,
    listeners: random.chance('another', 1, 2) ? [...kept, another] : [...kept, ...others.slice(1)],
    clusters: clusters.map((one) => ({ ...one, ...drawCluster(random.fork('variant')) })),
  };
}
