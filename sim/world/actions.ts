/**
 * What actors do to a world, as data: a run is its first state and a list of these, each at its time, so that a failure can
 * be made smaller and kept. Populations are named by number, modulo their size: no action becomes invalid when others are
 * taken out.
 */
import type { Address } from '../../core/address.ts';
import type { Command } from '../../core/commands.ts';
import type { Config } from '../../core/config.ts';
import type { Duration, Instant } from '../../core/time.ts';
import type { LinkFaults } from './faults.ts';
import type { LinkPlace } from './network.ts';
import type { OsFaults } from './os-faults.ts';
import type { BackendManner, Phase } from './spec.ts';

/** A host by what it is and its number there. */
export interface HostName {
  readonly role: 'proxy' | 'client' | 'backend';
  readonly number: number;
}

export type WorldAction =
  /** A client sends a request from its socket. Fewer bytes than a message has are sent as zeros; 0 is an empty datagram. */
  | {
      readonly kind: 'Send';
      readonly client: number;
      readonly proxy: number;
      /** Of the proxy's first configuration, by number. */
      readonly listener: number;
      readonly bytes: number;
    }
  /** A client closes its socket and opens one with another port. */
  | { readonly kind: 'Reopen'; readonly client: number }
  /** A datagram from a client's host under a source that may be anybody's. */
  | {
      readonly kind: 'Spoof';
      readonly host: number;
      readonly src: Address;
      readonly proxy: number;
      readonly listener: number;
      readonly bytes: number;
    }
  /** The NAT of a client forgets its mapping. */
  | { readonly kind: 'Remap'; readonly client: number }
  /** A backend behaves so from now on. */
  | {
      readonly kind: 'Behave';
      readonly backend: number;
      readonly manner: Partial<BackendManner>;
    }
  /** A machine is taken off the network, or back on it. */
  | { readonly kind: 'Power'; readonly host: HostName; readonly on: boolean }
  | {
      readonly kind: 'LinkFault';
      readonly host: HostName;
      readonly place: LinkPlace;
      readonly faults: Partial<LinkFaults>;
      readonly lasts: Duration;
    }
  /** Nothing gets from one host to another. */
  | {
      readonly kind: 'Cut';
      readonly from: HostName;
      readonly to: HostName;
      readonly lasts: Duration;
    }
  | {
      readonly kind: 'HostFault';
      readonly proxy: number;
      readonly faults: Partial<OsFaults>;
      readonly lasts: Duration;
    }
  /** An operator's word to a proxy. */
  | { readonly kind: 'Order'; readonly proxy: number; readonly command: Command }
  /** The process is gone from one moment to the next. */
  | { readonly kind: 'Crash'; readonly proxy: number }
  /** A process is started where none runs. */
  | { readonly kind: 'Start'; readonly proxy: number; readonly config: Config }
  | { readonly kind: 'Begin'; readonly phase: Phase };

export const WORLD_ACTION_KINDS: readonly WorldAction['kind'][] = [
  'Send',
  'Reopen',
  'Spoof',
  'Remap',
  'Behave',
  'Power',
  'LinkFault',
  'Cut',
  'HostFault',
  'Order',
  'Crash',
  'Start',
  'Begin',
];

/** An action and its time: it comes before whatever else happens at that instant. */
export interface ScriptEntry {
  readonly at: Instant;
  readonly action: WorldAction;
}

export type Script = readonly ScriptEntry[];
