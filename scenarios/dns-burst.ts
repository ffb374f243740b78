/** Resolvers ask in bursts, each question a flow that ends with its answer; nothing worse happens than a slow link. */
import { microseconds, milliseconds } from '../core/index.ts';
import {
  configOf,
  populationOf,
  proxyOf,
  QUIET_LINK,
  SHORT_PHASES,
  backendList,
  type ActorBody,
  type Cast,
  type WorldScenario,
} from '../sim/index.ts';

const CLIENTS = 24;

export const DNS_BURST: WorldScenario = {
  kind: 'world',
  name: 'dns-burst',
  purpose: 'bursts of questions, a flow each: nobody waits for an answer in vain',
  reaches: [],
  plan: ({ config }) => {
    const backends = config.between('backends', 1, 4);
    return {
      spec: {
        phases: SHORT_PHASES,
        link: QUIET_LINK,
        proxies: [proxyOf(configOf({ backends: backendList(backends), responses: 1 }))],
        ...populationOf({ clients: CLIENTS, backends }),
        withinTolerance: true,
      },
      cast: resolvers(CLIENTS),
    };
  },
};

/** Each asks a few questions at a time, then rests. */
function resolvers(count: number): Cast {
  return Object.fromEntries(
    Array.from({ length: count }, (_, client) => [`resolver ${client}`, resolver(client)]),
  );
}

function resolver(client: number): ActorBody {
  return async (actor) => {
    while (!actor.isPast('drain')) {
      const burst = actor.random.between('burst', 1, 8);
      for (let question = 0; question < burst; question++) {
        const bytes = actor.random.between('bytes', 20, 90);
        await actor.ask(client, { bytes, timeout: milliseconds(50) });
      }
      await actor.pause('rest', microseconds(1_000), milliseconds(80));
    }
  };
}
