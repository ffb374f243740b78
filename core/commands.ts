/**
 * What can be asked of a process, and how it answers: commands and replies as data (spec §8.1). Whoever hears them, a file
 * that is read again, a control socket or a test, speaks these words; control-state.ts says what each does.
 */
import type { Address } from './address.ts';
import type { BackendCommand } from './backend-commands.ts';
import type { RequestId } from './brand.ts';
import type { AccessLogSettings, ClusterSettings, Config, ListenerConfig } from './config.ts';
import type { Backend } from './contract.ts';
import type { FlowAnswer, FlowCommand } from './flow-commands.ts';
import type { Preview } from './preview.ts';
import type { Status } from './status.ts';
import type { Duration } from './time.ts';

/** What a listener may change while it is open. */
export type ListenerPatch = Partial<Omit<ListenerConfig, 'address' | 'cluster'>>;

/** A cluster without its backends. */
export type ClusterKnobs = Omit<ClusterSettings, 'backends'>;

/** A change of the configuration. Listeners are named by their address, clusters by their name. */
export type ConfigCommand =
  /** Inactive until it is activated. Exists: another has this address. */
  | { readonly kind: 'AddListener'; readonly config: ListenerConfig }
  /** Only what the patch names changes; live flows stay, unless the socket has to be another. */
  | { readonly kind: 'UpdateListener'; readonly address: Address; readonly patch: ListenerPatch }
  /** Active or not; its flows are closed. */
  | { readonly kind: 'RemoveListener'; readonly address: Address }
  /** A second time it changes nothing. */
  | { readonly kind: 'ActivateListener'; readonly address: Address }
  /** Closes socket and flows, and keeps the rest. */
  | { readonly kind: 'DeactivateListener'; readonly address: Address }
  /** Where a listener leads from now on. The cluster may come later. */
  | { readonly kind: 'AddFrontend'; readonly cluster: string; readonly address: Address }
  /** NotFound unless the listener leads to this very cluster. */
  | { readonly kind: 'RemoveFrontend'; readonly cluster: string; readonly address: Address }
  /** A new cluster, or new settings for the one of this name, which keeps its backends and their health. */
  | { readonly kind: 'AddCluster'; readonly settings: ClusterKnobs }
  /** Listeners that lead there lead nowhere until a cluster of this name comes back. */
  | { readonly kind: 'RemoveCluster'; readonly cluster: string }
  /** Appends, or replaces the one with this id and address in its place. */
  | { readonly kind: 'AddBackend'; readonly cluster: string; readonly backend: Backend }
  /** Every backend at this address, whatever its id. */
  | { readonly kind: 'RemoveBackend'; readonly cluster: string; readonly address: Address }
  /** Of every backend at this address. */
  | {
      readonly kind: 'SetWeight';
      readonly cluster: string;
      readonly address: Address;
      readonly weight: number;
    }
  /** The whole list, in this order: turns and Maglev's table depend on it. */
  | {
      readonly kind: 'SetBackends';
      readonly cluster: string;
      readonly backends: readonly Backend[];
    }
  /** How long a soft stop lets live flows finish. */
  | { readonly kind: 'SetGrace'; readonly grace: Duration }
  /** Undefined: none. */
  | { readonly kind: 'SetAccessLog'; readonly settings: AccessLogSettings | undefined };

export type Command =
  | ConfigCommand
  | BackendCommand
  | FlowCommand
  /** A dry run of Reload: what would move, while nothing does. */
  | { readonly kind: 'Preview'; readonly config: Config }
  /** The whole configuration from now on: all of it, or none. What stays the same is not touched. */
  | { readonly kind: 'Reload'; readonly config: Config }
  /** The grace time of the configuration begins now. */
  | { readonly kind: 'SoftStop' }
  | { readonly kind: 'HardStop' }
  | { readonly kind: 'Status' };

export interface Request {
  readonly request: RequestId;
  readonly command: Command;
}

/** Why a command was refused. It then changed nothing. */
export interface CommandError {
  readonly kind:
    /** There is no listener, cluster or backend of that name, or not there. */
    | 'NotFound'
    /** There is one already. */
    | 'Exists'
    /** A value out of range; the message says which, and the range. */
    | 'Invalid'
    /** It would leave a cluster without a backend that serves. */
    | 'LastBackend'
    /** The process is about to end. */
    | 'Stopping';
  /** A sentence for an operator. */
  readonly message: string;
}

/** What some commands tell beside that they were done. */
export type Answer =
  | { readonly kind: 'Status'; readonly status: Status }
  /** How many commands the reload came to. */
  | { readonly kind: 'Reloaded'; readonly commands: number }
  /** What the reload would come to, and what that would move. */
  | {
      readonly kind: 'Previewed';
      readonly commands: readonly ConfigCommand[];
      readonly preview: Preview;
    }
  /** What data planes answer of flows. */
  | Exclude<FlowAnswer, { kind: 'NotFound' | 'FlowCounts' }>;

export interface Accepted {
  readonly ok: true;
  /** Whether anything is different now; if not, nothing was directed. */
  readonly changed: boolean;
  /** Of the configuration that holds now. */
  readonly generation: number;
  readonly answer?: Answer | undefined;
}

export interface Refused {
  readonly ok: false;
  readonly error: CommandError;
}

export type Reply = Accepted | Refused;

/** A refusal with its reason. */
export function refused(kind: CommandError['kind'], message: string): Refused {
  return { ok: false, error: { kind, message } };
}
