/**
 * A configuration file that is read again while it is served. All of it is parsed before anything changes: with one error in
 * it the old configuration stays, and the problems are logged with path and line.
 */
import { formatAddress, type CommandError } from '../../core/index.ts';
import { advice } from '../advice.ts';
import { readEnvironment } from '../config/environment.ts';
import { loadConfig } from '../config/load.ts';
import type { ShellSettings } from '../config/parse.ts';
import type { Problem } from '../config/problem.ts';
import type { Log } from '../log.ts';
import type { ListenerFailed, Proxy } from '../proxy.ts';

const REFUSED = 'not reloaded: the old configuration stays';

/** A log is no place for every line of a long file that went wrong: `check` tells all of it. */
const PROBLEMS_TOLD_MAX = 100;

/** What became of a file that was read again. */
export type ReloadOutcome =
  | {
      readonly ok: true;
      readonly changed: boolean;
      readonly commands: number;
      /** Of the configuration that holds now. */
      readonly generation: number;
      /** Listeners that did not open; the rest is done. */
      readonly failures: readonly ListenerFailed[];
      /** Warnings and notices. */
      readonly problems: readonly Problem[];
      readonly settings: ShellSettings;
    }
  /** Nothing changed. */
  | { readonly ok: false; readonly error: CommandError; readonly problems: readonly Problem[] };

/** Reads `file` and gives it to `proxy`. Whatever becomes of it is told in the log, then to `answered`. */
export function reloadFile(
  file: string,
  proxy: Pick<Proxy, 'reload'>,
  log: Log,
  answered: (outcome: ReloadOutcome) => void = () => undefined,
): void {
  const { config, settings, problems } = loadConfig(file, readEnvironment(), 'refused');
  logProblems(log, problems);
  if (config === undefined || settings === undefined) {
    log.error({ file }, REFUSED);
    const error = { kind: 'Invalid', message: 'the file has errors' } as const;
    return answered({ ok: false, error, problems });
  }
  return proxy.reload(config, (reply, failures) => {
    if (!reply.ok) {
      log.error({ file, ...reply.error }, REFUSED);
      return answered({ ...reply, problems });
    }
    log.level = settings.logLevel;
    logFailures(log, failures);
    const { changed, generation, answer } = reply;
    const commands = answer?.kind === 'Reloaded' ? answer.commands : 0;
    log.info({ file, changed, commands, generation }, 'reloaded');
    return answered({ ok: true, changed, commands, generation, failures, problems, settings });
  });
}

function logFailures(log: Log, failures: readonly ListenerFailed[]): void {
  for (const { address, errno } of failures) {
    const listener = formatAddress(address);
    log.error({ listener, errno }, `cannot listen on ${listener}: ${errno}${advice(errno)}`);
  }
}

/** Errors come first among them, so none is hidden behind warnings. */
function logProblems(log: Log, problems: readonly Problem[]): void {
  for (const problem of problems.slice(0, PROBLEMS_TOLD_MAX)) logProblem(log, problem);
  const untold = problems.length - PROBLEMS_TOLD_MAX;
  if (untold > 0) log.warn({ untold }, 'more problems: `sozu-udp check` tells all of them');
}

function logProblem(log: Log, { severity, problem, ...where }: Problem): void {
  const level = ({ error: 'error', warning: 'warn', notice: 'info' } as const)[severity];
  log[level](where, problem);
}
