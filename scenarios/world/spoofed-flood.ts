/**
 * Datagrams under sources that are nobody's, a victim's, a backend's, or the proxy's own: they meet the access list, the rates,
 * the caps and the credit of an unproven client, and whoever really asks is still served.
 */
import { ipv4, type Address } from '../../core/index.ts';
import {
  anybody,
  backendAddress,
  backendList,
  chaos,
  configOf,
  crowd,
  drawBackends,
  drawCluster,
  drawListener,
  flood,
  LISTENER_PORT,
  proxyAddress,
  proxyOf,
  resolver,
  span,
  worldOf,
  type Actor,
  type WorldScenario,
} from '../../sim/index.ts';

const CLIENTS = 8;
const BACKENDS = 2;

export const SPOOFED_FLOOD: WorldScenario = {
  kind: 'world',
  name: 'spoofed-flood',
  purpose: 'floods under lying sources: lists, rates, caps and credit keep them within bounds',
  reaches: [
    'a source is denied',
    'a source opens flows too fast',
    'a source sends too fast',
    'an answer is over its credit',
    'a datagram that would circle is refused',
    'a packet is for nobody',
    'a datagram is too large',
    'a datagram is nobody’s',
    'a flow is shed at the cap',
  ],
  plan: ({ config }) => {
    const cluster = {
      ...drawCluster(config),
      backends: drawBackends(config, backendList(BACKENDS)),
      maxFlowsPerSubnet: config.pick('per subnet', [0, 16]),
      amplification: {
        factor: config.pick('factor', [1, 3]),
        floor: config.pick('floor', [0, 400]),
      },
      allowBackendAsClient: false,
      rates: {
        newFlowsPerSecond: config.pick('flows a second', [0, 5, 20]),
        newFlowsBurst: 8,
        datagramsPerSecond: config.pick('datagrams a second', [0, 40, 200]),
        datagramsBurst: 12,
        columns: 256,
        allow: config.pick('allowed', [[], ALLOWED]),
        deny: [{ base: ipv4(0x64000000, 0), bits: config.pick('denied', [9, 12]) }],
      },
    };
    const listener = { ...drawListener(config), maxFlows: 32, maxRxDatagramSize: 1_200 };
    return {
      spec: worldOf(
        { clients: CLIENTS, backends: BACKENDS, manner: { answerBytes: 600 } },
        { proxies: [proxyOf(configOf(cluster, listener))] },
      ),
      cast: {
        ...crowd('client', CLIENTS, resolver({ rest: span(50, 300) }, { retries: 3 })),
        strangers: flood({ sources: lies, every: span(1, 30), burst: 4, bytes: SIZES }),
        victim: flood({ sources: victim, every: span(5, 60), burst: 12, bytes: [40] }),
        chaos: chaos(config, { families: ['duplication', 'deaf', 'lag', 'late'] }),
      },
    };
  },
};

/** Empty, a question, a page, and more than a listener takes. */
const SIZES = [0, 20, 40, 600, 1_500];

/** Clients, backends and proxies of this world, and some of those whom nobody knows. */
const ALLOWED = [
  { base: ipv4(0x0a000000, 0), bits: 8 },
  { base: ipv4(0x64c00000, 0), bits: 10 },
];

/** One address at many ports, as a reflection has it. */
function victim({ random }: Actor): Address {
  return ipv4(0x64c10203, random.between('port', 1_024, 65_535));
}

function lies({ random }: Actor): Address {
  return random.pick('whose', [
    anybody(random, 4),
    anybody(random, 4),
    anybody(random, 4),
    backendAddress(0),
    { ...proxyAddress(0), port: LISTENER_PORT },
    ipv4(0xffffffff, 7),
    ipv4(0x64c20001, 0),
  ]);
}
