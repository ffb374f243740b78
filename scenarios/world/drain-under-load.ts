/**
 * Processes stop while clients talk, softly, hard, or by a crash, and are started again: a soft stop lets flows end in its
 * grace time, admits none, and closes everything it holds.
 */
import { milliseconds } from '../../core/index.ts';
import {
  backendList,
  chaos,
  chatter,
  configOf,
  crashes,
  crowd,
  drawBackends,
  drawCluster,
  drawHealth,
  drawListener,
  drawPlaneDelay,
  edits,
  looks,
  operator,
  phasesOf,
  proxyOf,
  resolver,
  restarts,
  span,
  worldOf,
  type WorldScenario,
} from '../../sim/index.ts';

const SHORT = 8;
const LONG = 4;
const BACKENDS = 2;

export const DRAIN_UNDER_LOAD: WorldScenario = {
  kind: 'world',
  name: 'drain-under-load',
  purpose: 'a process stops under load, softly, hard or by a crash, and another takes its place',
  reaches: [
    'a stop cuts flows short',
    'a stop waits for every flow',
    'a process dies with its flows',
    'a process starts where one was',
    'a command comes too late',
    'a socket closes on what it heard',
  ],
  plan: ({ config }) => {
    const cluster = {
      ...drawCluster(config),
      backends: drawBackends(config, backendList(BACKENDS)),
      health: config.chance('watched', 1, 2) ? drawHealth(config) : undefined,
      responses: config.pick('responses', [0, 1, 1]),
    };
    const settings = configOf(cluster, drawListener(config));
    const grace = milliseconds(config.pick('grace', [0, 50, 300]));
    return {
      spec: worldOf(
        { clients: SHORT + LONG, backends: BACKENDS },
        {
          phases: phasesOf(300, 2_500, 1_000, 4_000),
          proxies: [proxyOf({ ...settings, grace }, { planeDelay: drawPlaneDelay(config) })],
        },
      ),
      cast: {
        ...crowd('short', SHORT, resolver({ rest: span(30, 300) })),
        ...crowd('long', LONG, chatter({ rest: span(10, 150) }), SHORT),
        operator: operator({
          every: span(20, 200),
          jobs: [
            restarts('SoftStop', span(1, 500)),
            restarts('SoftStop', span(300, 500)),
            restarts('HardStop', span(1, 50)),
            crashes,
          ],
        }),
        colleague: operator({ jobs: [looks, edits], every: span(10, 100) }),
        chaos: chaos(config, { always: ['lag'], families: ['deaf', 'jam'] }),
      },
    };
  },
};
