/**
 * `sozu-udp run --config FILE`: checks the whole file, starts, and runs until a signal. SIGHUP has the file read again, SIGUSR1
 * the log opened anew.
 */
import { tmpdir } from 'node:os';
import {
  AssertionError,
  closesByReason,
  dropsByReason,
  formatAddress,
  type Config,
  type ListenerCounters,
} from '../../core/index.ts';
import { AccessLog } from '../access-log.ts';
import { advice } from '../advice.ts';
import { readEnvironment } from '../config/environment.ts';
import { loadConfig } from '../config/load.ts';
import type { ShellSettings } from '../config/parse.ts';
import { ControlServer, SocketError } from '../control/server.ts';
import { ControlService } from '../control/service.ts';
import { serverSocket, SOCKET_VARIABLE } from '../control/socket-path.ts';
import { watchFile } from '../config-watch.ts';
import { openLog, type Log, type OpenLog } from '../log.ts';
import type { RecorderSettings } from '../flight-recorder.ts';
import { choose, type Choice } from '../planes/choose.ts';
import { Proxy } from '../proxy.ts';
import { Reloader } from '../reloader.ts';
import { packageVersion } from '../version.ts';
import { onHangup, onReopen, stopOnSignals } from '../signals.ts';
import { startWatchers, type Watchers } from '../watchers.ts';
import { printable } from '../printable.ts';
import { formatProblems } from './check.ts';

/** Exit codes: 0 stopped as asked, 1 could not listen, 2 the configuration has errors. */
export async function runFile(file: string): Promise<number> {
  // From the first moment, because a SIGHUP that nobody hears ends the process. It is told when the start is over.
  let reload = (): void => undefined;
  onHangup(() => reload());
  const colour = process.stderr.isTTY;
  const { config, settings, problems } = loadConfig(file, readEnvironment());
  tell(formatProblems(problems, { colour }));
  if (config === undefined || settings === undefined) {
    tell(`${printable(file)}: nothing was started\n`);
    return 2;
  }
  const opened = openLogsOrTell(settings);
  if (opened === undefined) return 1;
  const { log, accessLog, reopen } = opened;
  onReopen(reopen);
  const choice = choose(settings);
  if (typeof choice === 'string') {
    tell(`io = "${settings.io}" cannot be had: ${printable(choice)}\n  fix: write io = "auto"\n`);
    return 1;
  }
  if (settings.workers !== 'auto' && choice.workers < settings.workers) {
    log.warn({ wanted: settings.workers, because: choice.reason }, 'there is one worker only');
  }
  const control = await openControl(file, settings, log);
  if (control === 'failed') return 1;
  let unwatch = (): void => undefined;
  const recorder = settings.recorder && {
    segmentBytes: settings.recorder.segmentBytes,
    folder: settings.recorder.folder ?? tmpdir(),
  };
  const code = await runConfig({ config, log, recorder, choice }, (proxy) => {
    const adopted = (latest: ShellSettings): void => followTarget(accessLog, latest, log);
    const reloader = new Reloader({ file, proxy, log, settings, adopted });
    proxy.accessLog = accessLog;
    reload = () => reloader.reload('signal');
    if (proxy.recorder) proxy.recorder.configuration = () => reloader.settings.text;
    if (settings.watchConfig) unwatch = watchFile(file, () => reloader.reload('watch'), log);
    const service = new ControlService({ proxy, reloader, log, version: packageVersion() });
    control?.serve({ service, events: proxy.events, now: () => proxy.now() });
    return startWatchers(settings, proxy, log, service);
  });
  unwatch();
  control?.close();
  await accessLog.close();
  return code;
}

/** Undefined where there is to be none, or where nobody asked for one and the usual one cannot be had. */
async function openControl(
  file: string,
  { commandSocket }: ShellSettings,
  log: Log,
): Promise<ControlServer | 'failed' | undefined> {
  const path = serverSocket(commandSocket, file);
  if (path === undefined) return undefined;
  try {
    return await ControlServer.open(path);
  } catch (error) {
    const reason = error instanceof SocketError ? error.message : String(error);
    if (commandSocket !== undefined || process.env[SOCKET_VARIABLE] !== undefined) {
      tell(`no control socket: ${printable(reason)}\n`);
      return 'failed';
    }
    log.warn({ reason }, 'no control socket: command_socket names another, or "" for none');
    return undefined;
  }
}

interface OpenLogs extends OpenLog {
  readonly accessLog: AccessLog;
}

function openLogsOrTell(settings: ShellSettings): OpenLogs | undefined {
  try {
    const { log, reopen } = openLog(settings);
    const accessLog = new AccessLog(log);
    accessLog.configure(settings.accessLogTarget);
    const reopenBoth = (): void => {
      reopen();
      accessLog.reopen();
    };
    return { log, accessLog, reopen: reopenBoth };
  } catch (error) {
    tell(`cannot open the log: ${printable(String(error))}\n`);
    return undefined;
  }
}

/** A file that cannot be opened leaves the access log where it was. */
function followTarget(
  accessLog: AccessLog,
  { accessLogTarget: target }: ShellSettings,
  log: Log,
): void {
  try {
    accessLog.configure(target);
  } catch (error) {
    log.error({ file: target, error: String(error) }, 'the access log could not be opened');
  }
}

/** Nobody looks: what a demo has. */
const NO_WATCHERS: Watchers = { close: () => undefined };

export interface RunOptions {
  readonly config: Config;
  readonly log: Log;
  readonly recorder?: RecorderSettings | undefined;
  /** node:dgram unless given. */
  readonly choice?: Choice | undefined;
}

/**
 * Runs until a signal; `started` is called once every listener is open, and starts what watches the proxy until it has
 * stopped, or says why it cannot.
 */
export async function runConfig(
  { config, log, recorder, choice }: RunOptions,
  started: (proxy: Proxy) => Promise<Watchers | string> | undefined = () => undefined,
): Promise<number> {
  const proxy = new Proxy(config, log, { recorder, choice });
  dumpOnCrash(proxy, log);
  await proxy.started;
  if (proxy.failures.length > 0) {
    for (const { address, errno } of proxy.failures) {
      tell(`cannot listen on ${formatAddress(address)}: ${errno}${advice(errno)}\n`);
    }
    proxy.stop();
    await proxy.stopped;
    return 1;
  }
  const quiet = stopOnSignals(proxy, (signal, hard) => {
    void proxy.refresh().then(({ flows }) => {
      log.info({ signal, flows }, hard ? 'closing at once' : 'draining');
    });
  });
  const watchers = (await started(proxy)) ?? NO_WATCHERS;
  if (typeof watchers === 'string') {
    tell(`${printable(watchers)}\n`);
    proxy.stop();
    await proxy.stopped;
    return 1;
  }
  log.info(
    {
      listeners: config.listeners.length,
      clusters: config.clusters.length,
      ...(choice && { ...proxy.about, because: choice.reason }),
    },
    'started',
  );
  const { flowsClosed } = await proxy.stopped;
  quiet();
  watchers.close();
  log.info({ flowsClosed, ...summary(proxy.figures.totals) }, 'stopped');
  return 0;
}

/** Before whoever ends the process: what it heard last is gone with it. */
function dumpOnCrash({ recorder }: Proxy, log: Log): void {
  if (recorder === undefined) return;
  process.prependOnceListener('uncaughtException', (error) => {
    try {
      const file = recorder.dumpNow(error instanceof AssertionError ? 'assertion' : 'exception');
      log.fatal({ file, error: error.message }, 'a bug; what led to it is in the trace');
    } catch (failure) {
      log.fatal({ error: error.message, failure: String(failure) }, 'a bug; no trace was written');
    }
  });
}

/** What became of every flow and datagram, for the last line of the log. */
function summary(totals: Readonly<ListenerCounters>): Record<string, unknown> {
  const { clientReceived, backendReceived, forwarded, returned, flowsCreated } = totals;
  const received = clientReceived + backendReceived;
  const [closed, dropped] = [closesByReason(totals), dropsByReason(totals)];
  return { flows: flowsCreated, closed, received, forwarded, returned, dropped };
}

/** On standard error. A warning that cannot be written, because the disk is full, is no reason not to start. */
function tell(text: string): void {
  try {
    process.stderr.write(text);
  } catch {
    // Nobody can be told.
  }
}
