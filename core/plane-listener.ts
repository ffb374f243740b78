/** One listener of a data plane: its configuration, its flow machine, its counters and the sockets of its flows. */
import { isUnspecified } from './address.ts';
import type { ListenerId } from './brand.ts';
import type { ListenerConfig } from './config.ts';
import type { ClusterConfig } from './contract.ts';
import type { Tally } from './egress.ts';
import { grownLedger, type FlowLedger } from './flow-log.ts';
import type { Binding } from './listener-opening.ts';
import { UdpManager } from './manager.ts';
import { newCounters } from './metrics.ts';
import type { PlaneOptions } from './plane-contract.ts';

export interface Listener extends Tally {
  readonly id: ListenerId;
  config: ListenerConfig;
  readonly generation: number;
  manager: UdpManager;
  /** Slot to socket id. */
  sockets: Float64Array;
  /** What flow-log.ts keeps of each flow, while it is on. */
  ledger: FlowLedger | undefined;
  readonly binding: Binding;
}

/** With a flow machine under `cluster`, and nothing counted. */
export function newListener(
  { id, config, generation }: Pick<Listener, 'id' | 'config' | 'generation'>,
  cluster: ClusterConfig,
  options: PlaneOptions,
): Listener {
  // Field by field: an object that a spread made has a layout of its own, and one from a snapshot would not share it.
  return {
    id,
    config,
    generation,
    manager: newManager(config, cluster, options, 0),
    counters: newCounters(),
    sockets: new Float64Array(config.maxFlows),
    ledger: undefined,
    binding: { retryAt: undefined, told: false, givenUp: false },
    sentToBackends: 0,
    sentToClients: 0,
  };
}

/** Another flow machine in the place of one that cannot be trusted; its flows are closed. Names of flows do not come again. */
export function renewManager(
  listener: Listener,
  cluster: ClusterConfig,
  options: PlaneOptions,
): void {
  const { config, counters } = listener;
  // A flow that was not counted failed with its admission: one for each restart at most.
  const flowsBefore = counters.flowsCreated + counters.restarts;
  listener.manager = newManager(config, cluster, options, flowsBefore);
}

function newManager(
  { maxFlows, maxRxDatagramSize, address }: ListenerConfig,
  cluster: ClusterConfig,
  { placementSeed, tableSeed }: PlaneOptions,
  flowsBefore: number,
): UdpManager {
  return new UdpManager({
    config: cluster,
    maxFlows,
    maxRxDatagramSize,
    placementSeed,
    tableSeed,
    keyedByLocal: isUnspecified(address),
    flowsBefore,
  });
}

/** Other limits, times or cluster under the same address. Room that is there is kept. */
export function updateListener(listener: Listener, config: ListenerConfig): void {
  listener.config = config;
  if (config.maxFlows <= listener.sockets.length) return;
  const sockets = new Float64Array(config.maxFlows);
  sockets.set(listener.sockets);
  listener.sockets = sockets;
  listener.ledger &&= grownLedger(listener.ledger, config.maxFlows);
}
