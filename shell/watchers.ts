/** What watches a proxy while it runs: the HTTP server with its metrics, and the push to statsd. */
import type { AdminSettings } from './config/watchers.ts';
import type { ShellSettings } from './config/parse.ts';
import type { ControlService } from './control/service.ts';
import { AdminServer, urlOf } from './admin-http.ts';
import { readToken } from './admin/token.ts';
import { advice } from './advice.ts';
import { Exposition } from './exposition.ts';
import type { Log } from './log.ts';
import { KernelWatch } from './metrics/kernel-drops.ts';
import { ProcessFigures } from './metrics/process-figures.ts';
import { ReloadFigures } from './metrics/reload-figures.ts';
import { add, readKernel, readPlanes, type Readings } from './metrics/readings.ts';
import type { Proxy } from './proxy.ts';
import { Statsd } from './statsd.ts';
import { packageVersion } from './version.ts';

export interface Watchers {
  close(): void;
}

/** Starts them; or says, for an operator, why one of them cannot be. */
export async function startWatchers(
  settings: Pick<ShellSettings, 'admin' | 'statsd'>,
  proxy: Proxy,
  log: Log,
  service: ControlService,
): Promise<Watchers | string> {
  const statsd = settings.statsd && new Statsd(settings.statsd, proxy);
  const admin =
    settings.admin && (await startAdmin(settings.admin, { proxy, log, service, statsd }));
  if (typeof admin === 'string') {
    statsd?.close();
    return admin;
  }
  return {
    close: () => {
      admin?.close();
      statsd?.close();
    },
  };
}

interface Around {
  readonly proxy: Proxy;
  readonly log: Log;
  readonly service: ControlService;
  readonly statsd: Statsd | undefined;
}

async function startAdmin(
  { address, tokenFile, hosts }: AdminSettings,
  { proxy, log, service, statsd }: Around,
): Promise<Watchers | string> {
  let token: string | undefined;
  try {
    token = tokenFile === undefined ? undefined : readToken(tokenFile);
  } catch (error) {
    return `no token for the HTTP server: ${error instanceof Error ? error.message : String(error)}`;
  }
  const figures = new ProcessFigures();
  const reloads = new ReloadFigures(proxy.events);
  const kernel = new KernelWatch(() => proxy.listenerSockets);
  const version = packageVersion();
  const exposition = new Exposition(async () => {
    const [drops, own] = [await kernel.figures(), await figures.read()];
    await proxy.refresh();
    const readings = readPlanes(proxy.measured);
    readKernel(readings, drops);
    for (const [name, value] of own) add(readings, name, value);
    readReloads(readings, reloads);
    add(readings, 'sozu_udp_ready', Number(proxy.readiness.ready));
    add(readings, 'sozu_udp_build_info', 1, { version, node: process.version });
    for (const [reason, count] of server.refusals) {
      add(readings, 'sozu_udp_admin_refused_total', count, { reason });
    }
    add(readings, 'sozu_udp_statsd_failed_total', statsd?.failed ?? 0);
    return readings;
  });
  const server = new AdminServer({
    proxy,
    exposition,
    hosts,
    token,
    overview: () => service.overview(),
  });
  const close = (): void => {
    server.close();
    figures.close();
    kernel.close();
    reloads.close();
  };
  const port = await server.listen({ address });
  if (typeof port === 'string') {
    close();
    return `the HTTP server cannot listen on ${urlOf(address, address.port)}: ${port}${advice(port)}`;
  }
  log.info({ url: urlOf(address, port), token: token !== undefined }, 'serving HTTP');
  return { close };
}

function readReloads(readings: Readings, reloads: ReloadFigures): void {
  add(readings, 'sozu_udp_config_last_reload_successful', Number(reloads.lastWasOk));
  const at = 'sozu_udp_config_last_reload_success_timestamp_seconds';
  add(readings, at, reloads.lastOkAt / 1_000);
  add(readings, 'sozu_udp_config_reloads_total', reloads.ok, { reason: 'ok' });
  add(readings, 'sozu_udp_config_reloads_total', reloads.refused, { reason: 'refused' });
}
