/** A snapshot of what a process is configured to do and how its backends are: the answer to Status. Data only. */
import type { OperatorState } from './balancing/candidates.ts';
import type { ListenerId } from './brand.ts';
import type { ListenerConfig } from './config.ts';
import type { ClusterKnobs } from './commands.ts';
import type { Backend } from './contract.ts';
import type { Health } from './health/hysteresis.ts';
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
