/**
 * An operator in a hurry: whole configurations, single commands and questions, one upon the other, to a proxy whose planes are
 * far apart. What is refused changes nothing, and what stays the same is not touched.
 */
import { milliseconds, type Config } from '../../core/index.ts';
import {
  adds,
  backendList,
  clusterOf,
  crowd,
  cycles,
  disables,
  drawBackends,
  drawCluster,
  drawHealth,
  drawListener,
  drawPlaneDelay,
  edits,
  kills,
  listenerOf,
  looks,
  operator,
  patches,
  previews,
  proxyAddress,
  proxyOf,
  reloads,
  resolver,
  reweighs,
  span,
  worldOf,
  type Actor,
  type WorldScenario,
} from '../../sim/index.ts';

const CLIENTS = 10;
const BACKENDS = 4;
const PORTS = [53, 54, 55];

export const RECONFIG_STORM: WorldScenario = {
  kind: 'world',
  name: 'reconfig-storm',
  purpose: 'reloads, commands and questions one upon the other, several listeners and clusters',
  reaches: [
    'a reload changes many things',
    'a reload changes nothing',
    'a reload is tried dry',
    'a command names what is not there',
    'a command names what is there already',
    'a command is out of range',
    'an operator is told why',
    'an operator ends a flow',
    'a flow ends with its listener',
    'a datagram finds no backend',
  ],
  plan: ({ config }) => {
    const clusters = ['one', 'two'].map((cluster) =>
      clusterOf({
        ...drawCluster(config.fork(cluster)),
        cluster,
        backends: drawBackends(config.fork(cluster), backendList(BACKENDS)),
        health: config.fork(cluster).chance('watched', 1, 2) ? drawHealth(config) : undefined,
      }),
    );
    const listeners = PORTS.map((port, number) =>
      listenerOf({
        ...drawListener(config.fork(`port ${port}`)),
        address: { ...proxyAddress(0), port },
        cluster: number % 2 === 0 ? 'one' : 'two',
      }),
    );
    const first = { clusters, listeners, grace: milliseconds(200) };
    return {
      spec: worldOf(
        { clients: CLIENTS, backends: BACKENDS },
        { proxies: [proxyOf(first, { planeDelay: drawPlaneDelay(config) })] },
      ),
      cast: {
        ...crowd('client', CLIENTS, resolver({ listeners: [0, 1, 2], rest: span(20, 200) })),
        operator: operator({ jobs: JOBS, every: span(1, 60) }),
        colleague: operator({
          jobs: [looks, looks, reweighs, previews(variant)],
          every: span(50, 400),
        }),
      },
    };
  },
};

const JOBS = [
  reloads(variant),
  reloads(variant),
  reloads((config) => config),
  adds,
  edits,
  disables,
  cycles,
  kills,
  looks,
  patches(({ random }) => ({ maxFlows: random.pick('cap', [0, 4, 256]) })),
];

/** Some of the listeners, each leading anywhere, and some of the clusters, with some of their backends. */
function variant({ clusters, listeners, grace }: Config, { random }: Actor): Config {
  const some = (): boolean => random.chance('some', 3, 4);
  return {
    grace,
    listeners: listeners
      .filter(some)
      .map((one) => ({ ...one, cluster: random.pick('leads to', ['one', 'two', 'nowhere']) })),
    clusters: clusters.filter(some).map((one) => ({
      ...one,
      ...drawCluster(random.fork('variant')),
      backends: random.shuffle('order', one.backends.filter(some)),
    })),
  };
}
