/** Resolvers ask in bursts, each question a flow that ends with its answer; nothing worse happens than a slow link. */
import { milliseconds } from '../../core/index.ts';
import {
  backendList,
  chaos,
  configOf,
  crowd,
  drawBackends,
  drawListener,
  drawPlaneDelay,
  drawPreset,
  proxyOf,
  resolver,
  span,
  worldOf,
  type WorldScenario,
} from '../../sim/index.ts';

const CLIENTS = 16;

export const DNS_BURST: WorldScenario = {
  kind: 'world',
  name: 'dns-burst',
  purpose: 'bursts of questions, a flow each: nobody waits for an answer in vain',
  reaches: [
    'a flow ends with its last answer',
    'a client is answered after healing',
    'a backend is told the true client',
  ],
  plan: ({ config }) => {
    const backends = config.between('backends', 1, 4);
    const cluster = {
      ...drawPreset(config, ['dns', 'ntp']),
      backends: drawBackends(config, backendList(backends)),
    };
    return {
      spec: worldOf(
        { clients: CLIENTS, backends },
        {
          proxies: [
            proxyOf(configOf(cluster, drawListener(config)), {
              planeDelay: drawPlaneDelay(config),
            }),
          ],
        },
      ),
      cast: {
        ...crowd(
          'resolver',
          CLIENTS,
          resolver({ burst: 5, rest: span(30, 700) }, { timeout: milliseconds(60) }),
        ),
        chaos: chaos(config, { families: ['slow', 'duplication', 'late'], every: span(50, 400) }),
      },
    };
  },
};
