/**
 * Small worlds on purpose: few clients, few instants, short timeouts, so that everything meets everything. What ends a walk or
 * refuses whatever comes is rare: most of what a flow machine does, it does to a client that comes again.
 */
import * as fc from 'fast-check';
import { ipv4, ipv6, type Address } from '../core/address.ts';
import { AMPLIFICATION_OFF } from '../core/amplification.ts';
import { flowId } from '../core/brand.ts';
import type { CloseReason, ClusterConfig, ConfigEvent, Fate, Refusal } from '../core/contract.ts';
import { microseconds } from '../core/time.ts';
import { ONE, TWO, type Action, type Verdicts } from './flow-rig.ts';
import type { ModelOptions } from './flow-model.ts';

/** An action, and how many microseconds after the one before. */
export interface Step {
  readonly wait: number;
  readonly action: Action;
}

const ports = fc.integer({ min: 1_000, max: 1_002 });

/** Neighbours in one subnet, strangers, link-local ones that differ by zone, and a few nobody can answer. */
const sources: fc.Arbitrary<Address> = fc.oneof(
  { weight: 24, arbitrary: fc.nat(1).map((n) => ipv4(0xc0000200 + n, 1_000)) },
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

const locals = fc.oneof(
  { weight: 4, arbitrary: fc.constant(ipv4(0x0a010001, 53)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(undefined, ipv4(0x0a010002, 53), ipv6([0x20010db8, 0, 0, 1], 53)),
  },
);

const timeouts = fc
  .oneof(fc.integer({ min: 0, max: 12 }), fc.integer({ min: 20, max: 60 }))
  .map(microseconds);
const smallCap = fc.constantFrom(0, 0, 0, 0, 1, 2, 3, 5);

const clusters: fc.Arbitrary<ClusterConfig> = fc.record({
  cluster: fc.constantFrom('dns', 'dns', 'dns', 'dns', 'ntp', 'ntp', ''),
  affinityWithPort: fc.boolean(),
  responses: smallCap,
  requests: smallCap,
  frontTimeout: timeouts,
  backTimeout: timeouts,
  sendProxyProtocol: fc.boolean(),
  proxyProtocolEveryDatagram: fc.boolean(),
  rejectClientHeader: fc.boolean(),
  maxFlowsPerIp: fc.constantFrom(0, 0, 0, 1, 2),
  maxFlowsPerSubnet: fc.constantFrom(0, 0, 0, 1, 3),
  subnetPrefixIpv4: fc.constantFrom(24, 24, 0, 31, 32),
  subnetPrefixIpv6: fc.constantFrom(64, 64, 0, 127, 128),
  responsesPerRequest: fc.boolean(),
  requestsLinger: fc.boolean(),
  lateReplyGrace: fc.constantFrom(0, 0, 3, 8).map(microseconds),
  forwardEmptyDatagrams: fc.boolean(),
  // One datagram each 1, 2 or 8 µs.
  datagramsPerSecond: fc.constantFrom(0, 0, 0, 1_000_000, 500_000, 125_000),
  datagramsBurst: fc.nat(3),
  amplification: fc.constantFrom(
    AMPLIFICATION_OFF,
    AMPLIFICATION_OFF,
    { factor: 1, floor: 0 },
    { factor: 2, floor: 3 },
  ),
});

/** A cluster that leads somewhere and refuses nobody. */
export const openClusters: fc.Arbitrary<ClusterConfig> = clusters.map((config) => ({
  ...config,
  cluster: 'dns',
  maxFlowsPerIp: 0,
  maxFlowsPerSubnet: 0,
}));

export const machines: fc.Arbitrary<ModelOptions> = fc.record({
  config: fc.oneof({ weight: 3, arbitrary: openClusters }, { weight: 1, arbitrary: clusters }),
  maxFlows: fc.oneof(
    { weight: 1, arbitrary: fc.nat(2) },
    { weight: 4, arbitrary: fc.integer({ min: 3, max: 8 }) },
  ),
  maxRxDatagramSize: fc.constantFrom(3, 1_500, 1_500, 1_500),
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
    { weight: 12, arbitrary: fc.nat(1) },
    { weight: 6, arbitrary: fc.nat(6) },
    { weight: 1, arbitrary: fc.constantFrom(-1, 2 ** 40) },
  )
  .map(flowId);
const reasons = fc.constantFrom<CloseReason>('Aborted', 'Drain', 'Idle', 'BackendLost', 'Killed');

const events: fc.Arbitrary<ConfigEvent> = fc.oneof(
  {
    weight: 20,
    arbitrary: fc
      .oneof({ weight: 3, arbitrary: openClusters }, { weight: 1, arbitrary: clusters })
      .map((config) => ({ kind: 'SetCluster', config }) as const),
  },
  {
    weight: 4,
    arbitrary: fc.nat(20).map((count) => ({ kind: 'SetMaxFlows', count }) as const),
  },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom(0, 2, 4, 1_500, 1_500, 1_500)
      .map((bytes) => ({ kind: 'SetMaxRxDatagramSize', bytes }) as const),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'Drain' } as const) },
);

const fate = fc.constantFrom<Fate[]>('keep', 'keep', 'keep', 'rebind', 'rebind', 'close');

/** Mostly silence. */
const verdicts: fc.Arbitrary<Verdicts> = fc.record({
  denied: fc.nat(15).map((n) => n === 0),
  refusal: fc.oneof(
    { weight: 7, arbitrary: fc.constant(undefined) },
    {
      weight: 1,
      arbitrary: fc.constantFrom<Refusal[]>(
        'Loop',
        'NewFlowRate',
        'DatagramRate',
        'NoDescriptor',
        'PortExhausted',
      ),
    },
  ),
  fates: fc.option(fc.record({ one: fate, other: fate }), { nil: undefined }),
});

const clientActions: fc.Arbitrary<Action> = fc
  .record({
    kind: fc.constant('client' as const),
    src: sources,
    local: locals,
    payload: payloads,
    serve: fc.constantFrom(ONE, ONE, ONE, TWO, TWO, TWO, undefined),
  })
  .chain((action) => verdicts.map((said) => ({ ...action, ...said })));

const backendActions: fc.Arbitrary<Action> = fc.record({
  kind: fc.constant('backend' as const),
  flow: ids,
  payload: payloads,
});

const traffic: fc.Arbitrary<Action> = fc.oneof(
  { weight: 10, arbitrary: clientActions },
  { weight: 5, arbitrary: backendActions },
  { weight: 2, arbitrary: fc.constant<Action>({ kind: 'timeout' }) },
);

const disturbances: fc.Arbitrary<Action> = fc.oneof(
  { weight: 6, arbitrary: events.map((event): Action => ({ kind: 'config', event })) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('abort' as const), flow: ids, reason: reasons }),
  },
  { weight: 1, arbitrary: fc.constant<Action>({ kind: 'closeAll' }) },
);

const waits = fc.constantFrom(0, 0, 1, 2, 3, 5, 10);

export const trafficSteps: fc.Arbitrary<Step> = fc.record({ wait: waits, action: traffic });

export const steps: fc.Arbitrary<Step> = fc.record({
  wait: waits,
  action: fc.oneof({ weight: 30, arbitrary: traffic }, { weight: 3, arbitrary: disturbances }),
});
