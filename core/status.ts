/** A snapshot of what a process is configured to do and how its backends are: the answer to Status. */
import type { OperatorState } from './balancing/candidates.ts';
import type { BackendStates } from './backend-states.ts';
import type { ListenerId } from './brand.ts';
import type { ListenerConfig } from './config.ts';
import type { ClusterKnobs } from './commands.ts';
import type { Backend } from './contract.ts';
import type { ListenerNumbers } from './control-directives.ts';
import type { ControlState } from './control-state.ts';
import type { Health } from './health/hysteresis.ts';
import type { HealthWatch } from './health/watch.ts';
import { knobsOf } from './reconcile.ts';
import type { Duration } from './time.ts';

export interface ListenerStatus {
  readonly config: ListenerConfig;
  readonly active: boolean;
  /** The data planes' name for it while it is active. */
  readonly listener: ListenerId | undefined;
  /** Why it did not open, when last it was to. */
  readonly failure: string | undefined;
}

export interface BackendStatusReport {
  readonly backend: Backend;
  /** As its probes see it. */
  readonly health: Health;
  /** Whether its traffic speaks against it. */
  readonly ejected: boolean;
  /** What operators want of it. */
  readonly state: OperatorState;
}

export interface ClusterStatusReport {
  readonly settings: ClusterKnobs;
  readonly backends: readonly BackendStatusReport[];
}

export interface Status {
  readonly generation: number;
  readonly stopping: boolean;
  readonly grace: Duration;
  readonly listeners: readonly ListenerStatus[];
  readonly clusters: readonly ClusterStatusReport[];
}

/** What of a process can be asked all the time. */
export interface Condition {
  /** Of the configuration that holds. */
  readonly generation: number;
  readonly stopping: boolean;
  /** Why listeners did not open that should be, by address. */
  readonly failures: ReadonlyMap<string, string>;
}

export interface StatusSources {
  readonly state: ControlState;
  readonly numbers: ListenerNumbers;
  readonly watch: HealthWatch;
  readonly states: BackendStates;
}

export function statusOf(
  { generation, stopping, failures }: Condition,
  { state, numbers, watch, states }: StatusSources,
): Status {
  return {
    generation,
    stopping,
    grace: state.grace,
    listeners: [...state.listeners].map(([key, { config, active }]) => {
      return { config, active, listener: numbers.of(key), failure: failures.get(key) };
    }),
    clusters: [...state.clusters.values()].map((settings) => ({
      settings: knobsOf(settings),
      backends: settings.backends.map((backend) => ({
        backend,
        health: watch.healthOf(settings.cluster, backend.address),
        ejected: watch.isEjected(settings.cluster, backend.address),
        state: states.stateOf(settings.cluster, backend.address),
      })),
    })),
  };
}
