/**
 * What a snapshot must know of the code: the classes whose instances make up a machine, so that an instance comes back as one,
 * and the objects that every machine of a process shares. What a machine holds is not listed: fields are found by looking.
 */
import { AccessList, RangeTable } from './cidr.ts';
import { BackendSet } from './balancing/backend-set.ts';
import { Candidates } from './balancing/candidates.ts';
import { LeastLoaded } from './balancing/least-loaded.ts';
import { BackendLoads, RequestWindow } from './balancing/load.ts';
import { MaglevTable } from './balancing/maglev-table.ts';
import { Maglev } from './balancing/maglev.ts';
import { PowerOfTwo } from './balancing/power-of-two.ts';
import { WeightedRandom } from './balancing/random.ts';
import { Rendezvous } from './balancing/rendezvous.ts';
import { RoundRobin } from './balancing/round-robin.ts';
import { BackOff } from './back-off.ts';
import { CLUSTER_DEFAULTS, NO_SOURCE_RATES } from './config.ts';
import { NO_CLUSTER } from './contract.ts';
import { ControlPlane } from './control-plane.ts';
import { EMPTY_STATE } from './control-state.ts';
import { CountingTable } from './counting-table.ts';
import { DataPlane } from './data-plane.ts';
import { Deadlines } from './deadlines.ts';
import { FLOW_EGRESS, LISTENER_EGRESS } from './egress-queue.ts';
import { FlowRates } from './flow-rates.ts';
import { FlowTable } from './flow-table.ts';
import { FlowTrains } from './flow-trains.ts';
import { PLACEMENT_SEED } from './hash.ts';
import { AnswerEvidence } from './health/answer-evidence.ts';
import { DueQueue } from './health/due-queue.ts';
import { INITIAL_HEALTH } from './health/hysteresis.ts';
import { passiveSettings } from './health/passive-contract.ts';
import { PassiveHealth } from './health/passive.ts';
import { RefusalEvidence } from './health/refusal-evidence.ts';
import { HEALTH_DEFAULTS } from './health/settings.ts';
import { OwnAddresses } from './hostile.ts';
import { LiveFlows } from './live-flows.ts';
import { UdpManager } from './manager.ts';
import { OutputQueue } from './output-queue.ts';
import { Comparison, PreviewJob, type PreviewOptions } from './preview.ts';
import { createRandom } from './random.ts';
import { Registry } from './registry.ts';
import { SlotIndex } from './slot-index.ts';
import { SnapshotCatalog, type Makers } from './snapshot-catalog.ts';
import { SourceLimits } from './source-limits.ts';
import { SourcePolicer } from './source-policer.ts';
import { TokenSketch } from './token-sketch.ts';
import { OPEN_BACK_OFF } from './upstream-sources.ts';
import { UsedPart } from './used-part.ts';

const WORDS = { high: 0, low: 0 };
const SEED = { first: 0, second: 0 };
const NOTHING = { listeners: [], clusters: [] };

const NO_PREVIEW: PreviewOptions = {
  before: NOTHING,
  after: NOTHING,
  known: () => ({ healthy: true, state: 'active' }),
  counts: [],
  placementSeed: PLACEMENT_SEED,
  keys: [],
};

/**
 * Of what is made while a machine runs, any instance at all: its fields are then set to those of the snapshot. Made by its own
 * constructor, it has the very layout in memory that code which was compiled for the others expects.
 */
const MAKERS: Makers = {
  AccessList: () => new AccessList([], []),
  AnswerEvidence: () => new AnswerEvidence(),
  BackOff: () => new BackOff(OPEN_BACK_OFF),
  BackendLoads: () => new BackendLoads('CONNECTIONS'),
  BackendSet: newBackendSet,
  Candidates: () => new Candidates(),
  Comparison: () => new Comparison(undefined, undefined, NO_PREVIEW),
  CountingTable: () => new CountingTable(1, SEED),
  Deadlines: () => new Deadlines(1),
  DueQueue: () => new DueQueue(),
  FlowRates: () => new FlowRates(1),
  FlowTable: () => new FlowTable(1, SEED, false),
  FlowTrains: () => new FlowTrains(newLiveFlows(), new OutputQueue()),
  LeastLoaded: () => new LeastLoaded(new BackendLoads('CONNECTIONS')),
  LiveFlows: newLiveFlows,
  Maglev: () => new Maglev(WORDS, 2),
  MaglevTable: () => new MaglevTable(WORDS, 2, []),
  OutputQueue: () => new OutputQueue(),
  OwnAddresses: () => new OwnAddresses({ listeners: [], backends: [], hosts: [], seed: SEED }),
  PassiveHealth: () => new PassiveHealth(passiveSettings(undefined, undefined)),
  PowerOfTwo: () => new PowerOfTwo(createRandom(WORDS), new BackendLoads('CONNECTIONS')),
  PreviewJob: () => new PreviewJob(NO_PREVIEW),
  Random: () => createRandom(WORDS),
  RangeTable: () => new RangeTable([]),
  RefusalEvidence: () => new RefusalEvidence(),
  Registry: () => new Registry(),
  Rendezvous: () => new Rendezvous(WORDS),
  RequestWindow: () => new RequestWindow(),
  RoundRobin: () => new RoundRobin(),
  SlotIndex: () => new SlotIndex(1),
  SourceLimits: () => new SourceLimits(1, SEED),
  SourcePolicer: () => new SourcePolicer({ rates: NO_SOURCE_RATES, subnetPrefixIpv6: 64 }, SEED),
  TokenSketch: () => new TokenSketch({ rate: 1, burst: 1, columns: 1, seed: SEED }),
  UdpManager: newUdpManager,
  UsedPart: () => new UsedPart(new Int32Array(0), 1),
  WeightedRandom: () => new WeightedRandom(createRandom(WORDS)),
};

/**
 * Plain data that modules share: a restored machine goes on sharing it, so that what it makes later is shared as it would have
 * been, and two snapshots say the same. A test knows when one is missing.
 */
const CONSTANTS: Readonly<Record<string, object>> = {
  CLUSTER_DEFAULTS,
  EMPTY_STATE,
  FLOW_EGRESS,
  HEALTH_DEFAULTS,
  INITIAL_HEALTH,
  LISTENER_EGRESS,
  NO_CLUSTER,
  NO_SOURCE_RATES,
  OPEN_BACK_OFF,
  PLACEMENT_SEED,
};

let catalog: SnapshotCatalog | undefined;

/** Made once, at the first snapshot. */
export function coreCatalog(): SnapshotCatalog {
  catalog ??= new SnapshotCatalog(MAKERS, CONSTANTS, {
    DataPlane: new DataPlane({ placementSeed: WORDS, tableSeed: SEED, randomSeed: WORDS }),
    ControlPlane: new ControlPlane({ randomSeed: WORDS }),
  });
  return catalog;
}

function newBackendSet(): BackendSet {
  return new BackendSet({
    loadBalancing: 'ROUND_ROBIN',
    loadMetric: 'CONNECTIONS',
    random: createRandom(WORDS),
    placementSeed: WORDS,
    backends: [],
  });
}

function newLiveFlows(): LiveFlows {
  return new LiveFlows(1, { tableSeed: SEED }, new OutputQueue());
}

function newUdpManager(): UdpManager {
  return new UdpManager({
    config: NO_CLUSTER,
    maxFlows: 1,
    maxRxDatagramSize: 1,
    placementSeed: WORDS,
    tableSeed: SEED,
  });
}
