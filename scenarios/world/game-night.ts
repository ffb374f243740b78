/** Players talk to a game server that crashes now and then: nobody may lose their place to a proxy that forgets them. */
import { milliseconds } from '../../core/index.ts';
import {
  backendList,
  chaos,
  chatter,
  configOf,
  crowd,
  looks,
  operator,
  phasesOf,
  proxyOf,
  span,
  worldOf,
  type WorldScenario,
} from '../../sim/index.ts';

const PLAYERS = 12;

export const GAME_NIGHT: WorldScenario = {
  kind: 'world',
  name: 'game-night',
  purpose: 'players talk to servers that crash: each comes back to the server it had',
  // What must happen within a sweep; the names stand in sim/world/coverage.ts.
  reaches: ['a refusal is heard', 'a flow ends idle', 'a client is answered after healing'],
  // The world and the actors of one seed. Whatever a seed is to decide is drawn from `config`, by a name.
  plan: ({ config }) => {
    const servers = config.between('servers', 1, 3);
    const cluster = {
      backends: backendList(servers),
      loadBalancing: config.pick('policy', ['HRW', 'MAGLEV'] as const),
      onBackendDown: 'pin' as const,
      frontTimeout: milliseconds(150),
    };
    return {
      // Calm, chaos, heal, drain: faults live in chaos only, and then the proxy has to recover.
      spec: worldOf(
        { clients: PLAYERS, backends: servers, manner: { delay: milliseconds(2) } },
        { proxies: [proxyOf(configOf(cluster))], phases: phasesOf(300, 1_500, 800, 3_000) },
      ),
      cast: {
        ...crowd('player', PLAYERS, chatter({ bytes: [30, 120], burst: 4, rest: span(20, 300) })),
        watcher: operator({ jobs: [looks], every: span(100, 500) }),
        chaos: chaos(config, {
          always: ['crash'],
          families: ['loss', 'slow', 'duplication', 'standstill'],
          lasts: span(50, 300),
        }),
      },
    };
  },
};
