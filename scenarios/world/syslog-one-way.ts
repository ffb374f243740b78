/**
 * Loggers that never hear a word: a flow lives as long as its sender keeps talking, so only caps on requests, backends that
 * are lost and operators ever move one. A dead collector must not swallow a stream for ever.
 */
import {
  backendList,
  chaos,
  configOf,
  crowd,
  disables,
  drawBackends,
  drawHealth,
  drawListener,
  drawPreset,
  edits,
  logger,
  operator,
  proxyOf,
  span,
  undrains,
  worldOf,
  type WorldScenario,
} from '../../sim/index.ts';

const CLIENTS = 8;
const BACKENDS = 3;

export const SYSLOG_ONE_WAY: WorldScenario = {
  kind: 'world',
  name: 'syslog-one-way',
  purpose: 'streams that nobody answers: they follow caps, lost collectors and operators',
  reaches: [
    'a flow ends with its last request',
    'a flow goes on with another backend',
    'a flow ends with its backend',
    'probes take a backend out',
    'the last backend is kept',
    'a link loses a packet',
  ],
  plan: ({ config }) => {
    const cluster = {
      ...drawPreset(config, ['syslog']),
      backends: drawBackends(config, backendList(BACKENDS)),
      health: { ...drawHealth(config), mode: 'TCP_PROBE' as const },
      requests: config.pick('requests', [0, 3, 20]),
      onBackendDown: config.pick('down', ['rebind', 'rebind', 'close'] as const),
    };
    return {
      spec: worldOf(
        { clients: CLIENTS, backends: BACKENDS, manner: { answers: 0 } },
        { proxies: [proxyOf(configOf(cluster, drawListener(config)))] },
      ),
      cast: {
        ...crowd(
          'logger',
          CLIENTS,
          logger({ bytes: [60, 300, 900], burst: 8, rest: span(20, 200) }),
        ),
        operator: operator({ jobs: [edits, disables, disables, undrains], every: span(20, 250) }),
        chaos: chaos(config, {
          always: ['crash'],
          families: ['power', 'loss', 'narrow', 'corruption'],
          lasts: span(50, 500),
        }),
      },
    };
  },
};
