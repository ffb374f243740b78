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
      /** Keys and tables of the file that would apply from the next start. */
      readonly atNextStart: readonly string[];
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

/** What a reload leaves as it was at the start, by the names that the file has for it. */
const SET_AT_THE_START = [
  ['io', 'io'],
  ['workers', 'workers'],
  ['steer', 'steer'],
  ['commandSocket', 'command_socket'],
  ['logTarget', 'log_target'],
  ['watchConfig', 'watch_config'],
  ['recorder', 'recorder'],
  ['admin', 'admin'],
  ['statsd', 'metrics'],
] as const;

export class Reloader {
  /** What was started. */
  readonly file: string;
  private readonly proxy: ReloaderOptions['proxy'];
  private readonly log: Log;
  private readonly adopted: (settings: ShellSettings) => void;
  private readonly started: ShellSettings;
  private current: ShellSettings;
  private record: ReloadRecord;

  constructor({ file, proxy, log, settings, adopted }: ReloaderOptions) {
    this.file = file;
    this.proxy = proxy;
    this.log = log;
    this.started = settings;
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

  /** Keys and tables of that file that apply from the next start, because they are not what the process was started with. */
  get atNextStart(): readonly string[] {
    return this.changedSinceStart(this.current);
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
    const { config, settings, problems } = loadConfig(file, readEnvironment(), 'refused');
    if (config === undefined || settings === undefined) {
      const message = 'the file has errors';
      return answered({ ok: false, error: { kind: 'Invalid', message }, problems });
    }
    const atNextStart = this.changedSinceStart(settings);
    return this.preview(config, { problems, atNextStart }, answered);
  }

  private preview(
    config: Config,
    said: { readonly problems: readonly Problem[]; readonly atNextStart: readonly string[] },
    answered: (result: DryRun) => void,
  ): void {
    this.proxy.command({ kind: 'Preview', config }, (reply) => {
      if (!reply.ok) return answered({ ...reply, problems: said.problems });
      if (reply.answer?.kind !== 'Previewed') return;
      const { commands, preview } = reply.answer;
      answered({ ok: true, ...said, commands, preview });
    });
  }

  /** What the shell opened at its start stays open. */
  private adopt(settings: ShellSettings): void {
    this.current = settings;
    for (const setting of this.atNextStart) {
      this.log.warn({ setting }, 'changed in the file: it applies from the next start');
    }
    this.adopted(settings);
  }

  private changedSinceStart(settings: ShellSettings): readonly string[] {
    const changed = SET_AT_THE_START.filter(
      ([key]) => !isDeepStrictEqual(settings[key], this.started[key]),
    );
    return changed.map(([, name]) => name);
  }
}
