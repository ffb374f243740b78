/**
 * The configuration file of a running proxy: read again on SIGHUP, on command or when it changed, and remembered how that
 * went, because a reload that failed is seen by nobody who does not ask.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Config, Preview, ConfigCommand, Refused } from '../core/index.ts';
import { readEnvironment } from './config/environment.ts';
import { loadConfig } from './config/load.ts';
import type { ShellSettings } from './config/parse.ts';
import type { Problem } from './config/problem.ts';
import { reloadFile, type ReloadOutcome } from './commands/reload.ts';
import type { Log } from './log.ts';
import type { Proxy } from './proxy.ts';

export type ReloadCause = 'start' | 'signal' | 'command' | 'watch';

/** The last time that the file was read. */
export interface ReloadRecord {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly cause: ReloadCause;
  readonly file: string;
  readonly outcome: ReloadOutcome;
}

/** What a reload would come to. */
export type DryRun =
  | {
      readonly ok: true;
      readonly problems: readonly Problem[];
      readonly commands: readonly ConfigCommand[];
      readonly preview: Preview;
    }
  | (Refused & { readonly problems: readonly Problem[] });

export interface ReloaderOptions {
  readonly file: string;
  readonly proxy: Pick<Proxy, 'command' | 'events' | 'reload'>;
  readonly log: Log;
  /** Those that the proxy was started with. */
  readonly settings: ShellSettings;
  /** Hears of those that a reload brought. */
  readonly adopted?: ((settings: ShellSettings) => void) | undefined;
}

const SET_AT_THE_START = [
  'io',
  'workers',
  'steer',
  'commandSocket',
  'logTarget',
  'watchConfig',
  'admin',
  'statsd',
] as const;

export class Reloader {
  /** What was started. */
  readonly file: string;
  private readonly proxy: ReloaderOptions['proxy'];
  private readonly log: Log;
  private readonly adopted: (settings: ShellSettings) => void;
  private current: ShellSettings;
  private record: ReloadRecord;

  constructor({ file, proxy, log, settings, adopted }: ReloaderOptions) {
    this.file = file;
    this.proxy = proxy;
    this.log = log;
    this.current = settings;
    this.adopted = adopted ?? ((): void => undefined);
    const outcome: ReloadOutcome = {
      ok: true,
      changed: true,
      commands: 0,
      generation: 1,
      failures: [],
      problems: [],
      settings,
    };
    this.record = { at: Date.now(), cause: 'start', file, outcome };
  }

  /** The last reload, or the start. */
  get last(): ReloadRecord {
    return this.record;
  }

  /** Of the file that was read last without an error. */
  get settings(): ShellSettings {
    return this.current;
  }

  /** Reads `file`, the one of the start unless given, and gives it to the proxy: all of it, or nothing with an error in it. */
  reload(
    cause: ReloadCause,
    answered: (outcome: ReloadOutcome) => void = () => undefined,
    file: string = this.file,
  ): void {
    reloadFile(file, this.proxy, this.log, (outcome) => {
      if (outcome.ok) this.adopt(outcome.settings);
      this.record = { at: Date.now(), cause, file, outcome };
      this.proxy.events.publish({ kind: 'Reload', reload: this.record });
      answered(outcome);
    });
  }

  /** What `reload` would do, while nothing changes. */
  dryRun(answered: (result: DryRun) => void, file: string = this.file): void {
    const { config, problems } = loadConfig(file, readEnvironment(), 'refused');
    if (config === undefined) {
      const message = 'the file has errors';
      return answered({ ok: false, error: { kind: 'Invalid', message }, problems });
    }
    return this.preview(config, problems, answered);
  }

  private preview(
    config: Config,
    problems: readonly Problem[],
    answered: (result: DryRun) => void,
  ): void {
    this.proxy.command({ kind: 'Preview', config }, (reply) => {
      if (!reply.ok) return answered({ ...reply, problems });
      if (reply.answer?.kind !== 'Previewed') return;
      const { commands, preview } = reply.answer;
      answered({ ok: true, problems, commands, preview });
    });
  }

  /** What the shell opened at its start stays open. */
  private adopt(settings: ShellSettings): void {
    for (const key of SET_AT_THE_START) {
      if (isDeepStrictEqual(settings[key], this.current[key])) continue;
      this.log.warn({ setting: key }, 'changed in the file: it applies from the next start');
    }
    this.current = settings;
    this.adopted(settings);
  }
}
