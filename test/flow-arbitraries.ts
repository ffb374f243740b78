/** Small worlds on purpose: few clients, few instants, short timeouts, so that everything meets everything. */
import * as fc from 'fast-check';
import { ipv4, ipv6, type Address } from '../core/address.ts';
import { AMPLIFICATION_OFF } from '../core/amplification.ts';
import { flowId } from '../core/brand.ts';
import type { CloseReason, ClusterConfig, ConfigEvent } from '../core/contract.ts';
import { microseconds } from '../core/time.ts';
import { ONE, TWO, type Action } from './flow-rig.ts';
import type { ModelOptions } from './flow-model.ts';

/** An action, and how many microseconds after the one before. */
export interface Step {
  readonly wait: number;
  readonly action: Action;
}

const ports = fc.integer({ min: 1_000, max: 1_002 });

/** Neighbours in one subnet, strangers, link-local ones that differ by zone, and a few nobody can answer. */
const sources: fc.Arbitrary<Address> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(fc.nat(3), ports).map(([n, port]) => ipv4(0xc0000200 + n, port)),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(fc.nat(1), ports).map(([n, port]) => ipv4(0x0a000000 + n, port)),
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(fc.nat(1), fc.nat(1), ports)
      .map(([n, scope, port]) => ipv6([0xfe800000, 0, 0, n], port, scope)),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      ipv4(0xe0000001, 53),
      ipv4(-1, 53),
      ipv4(0, 53),
      ipv4(0xc0000201, 0),
      ipv6([0xff020000, 0, 0, 1], 53),
    ),
  },
);

const locals = fc.option(
  fc.constantFrom(ipv4(0x0a010001, 53), ipv4(0x0a010002, 53), ipv6([0x20010db8, 0, 0, 1], 53)),
  { nil: undefined },
);

const timeouts = fc.integer({ min: 0, max: 12 }).map(microseconds);
const smallCap = fc.constantFrom(0, 0, 0, 1, 2, 3);

const clusters: fc.Arbitrary<ClusterConfig> = fc.record({
  cluster: fc.constantFrom('dns', 'dns', 'dns', 'ntp', ''),
  affinityWithPort: fc.boolean(),
  responses: smallCap,
  requests: smallCap,
  frontTimeout: timeouts,
  backTimeout: timeouts,
  sendProxyProtocol: fc.boolean(),
  proxyProtocolEveryDatagram: fc.boolean(),
  rejectClientHeader: fc.boolean(),
  maxFlowsPerIp: fc.constantFrom(0, 0, 1, 2),
  maxFlowsPerSubnet: fc.constantFrom(0, 0, 1, 3),
  subnetPrefixIpv4: fc.constantFrom(24, 24, 0, 31, 32),
  subnetPrefixIpv6: fc.constantFrom(64, 64, 0, 127, 128),
  responsesPerRequest: fc.constant(false),
  requestsLinger: fc.constant(false),
  lateReplyGrace: fc.constant(microseconds(0)),
  forwardEmptyDatagrams: fc.constant(false),
  datagramsPerSecond: fc.constant(0),
  datagramsBurst: fc.constant(0),
  amplification: fc.constant(AMPLIFICATION_OFF),
});

/** A cluster that leads somewhere and refuses nobody. */
export const openClusters: fc.Arbitrary<ClusterConfig> = clusters.map((config) => ({
  ...config,
  cluster: 'dns',
  maxFlowsPerIp: 0,
  maxFlowsPerSubnet: 0,
}));

export const machines: fc.Arbitrary<ModelOptions> = fc.record({
  config: fc.oneof(openClusters, clusters),
  maxFlows: fc.integer({ min: 0, max: 8 }),
  maxRxDatagramSize: fc.constantFrom(3, 1_500),
  keyedByLocal: fc.boolean(),
});

/** Payloads up to a little above the small limit. The largest that there is comes in manager.test.ts. */
const HEADER = [13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10, 33];
const payloads = fc.oneof(
  { arbitrary: fc.nat(4).map((length) => new Uint8Array(length)), weight: 7 },
  { arbitrary: fc.constant(HEADER).map((bytes) => Uint8Array.from(bytes)), weight: 1 },
);
/** Mostly ids that may live; some that cannot. */
const ids = fc
  .oneof(
    { weight: 9, arbitrary: fc.nat(6) },
    { weight: 1, arbitrary: fc.constantFrom(-1, 2 ** 40) },
  )
  .map(flowId);
const reasons = fc.constantFrom<CloseReason>('Aborted', 'Drain', 'Idle');

const events: fc.Arbitrary<ConfigEvent> = fc.oneof(
  { weight: 6, arbitrary: clusters.map((config) => ({ kind: 'SetCluster', config }) as const) },
  {
    weight: 3,
    arbitrary: fc.nat(20).map((count) => ({ kind: 'SetMaxFlows', count }) as const),
  },
  {
    weight: 1,
    arbitrary: fc.nat(5).map((bytes) => ({ kind: 'SetMaxRxDatagramSize', bytes }) as const),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'Drain' } as const) },
);

const clientActions: fc.Arbitrary<Action> = fc.record({
  kind: fc.constant('client' as const),
  src: sources,
  local: locals,
  payload: payloads,
  serve: fc.constantFrom(ONE, ONE, TWO, TWO, undefined),
});

const backendActions: fc.Arbitrary<Action> = fc.record({
  kind: fc.constant('backend' as const),
  flow: ids,
  payload: payloads,
});

const traffic: fc.Arbitrary<Action> = fc.oneof(
  { weight: 10, arbitrary: clientActions },
  { weight: 5, arbitrary: backendActions },
  { weight: 4, arbitrary: fc.constant<Action>({ kind: 'timeout' }) },
);

const disturbances: fc.Arbitrary<Action> = fc.oneof(
  { weight: 6, arbitrary: events.map((event): Action => ({ kind: 'config', event })) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('abort' as const), flow: ids, reason: reasons }),
  },
  { weight: 1, arbitrary: fc.constant<Action>({ kind: 'closeAll' }) },
);

const waits = fc.constantFrom(0, 0, 1, 2, 3, 5, 10);

export const trafficSteps: fc.Arbitrary<Step> = fc.record({ wait: waits, action: traffic });

export const steps: fc.Arbitrary<Step> = fc.record({
  wait: waits,
  action: fc.oneof({ weight: 20, arbitrary: traffic }, { weight: 3, arbitrary: disturbances }),
});
