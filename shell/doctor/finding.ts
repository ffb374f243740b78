/** What a doctor finds, as data. */
import type { Config, ListenerConfig } from '../../core/index.ts';
import type { Severity } from '../config/problem.ts';
import type { ShellSettings } from '../config/parse.ts';
import type { Machine } from './machine.ts';

export interface Finding {
  /** A notice is worth knowing and changes no exit code. */
  readonly severity: Severity;
  /** One word for what was looked at. */
  readonly check: string;
  readonly what: string;
  /** What comes of it. */
  readonly why?: string | undefined;
  /** A command, or what to write where. */
  readonly fix?: string | undefined;
}

/** A machine, and the configuration that it is to run. */
export interface Patient {
  readonly machine: Machine;
  /** Undefined where none was named. */
  readonly config: Config | undefined;
  readonly settings: ShellSettings | undefined;
  /** Live flows of all listeners at most; without a configuration, those of one with `max_flows = 0`. */
  readonly flows: number;
  /** Of the control socket; undefined where there is to be none. */
  readonly socket: string | undefined;
  /** Whether a proxy answers there. */
  readonly isRunning: boolean;
}

export function listenersOf({ config }: Patient): readonly ListenerConfig[] {
  return config?.listeners ?? [];
}
