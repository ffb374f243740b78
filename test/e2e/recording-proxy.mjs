/**
 * The proxy as a program of one's own would run it, which writes a trace when it is asked: `node recording-proxy.mjs FILE`.
 * SIGUSR2 asks, SIGHUP reads FILE again, SIGTERM drains.
 */
import { createLog, loadConfig, Proxy } from '../../dist/shell/index.js';

const file = process.argv.at(-1);
const log = createLog('info');
const { config, settings, problems } = loadConfig(file, {});
if (config === undefined) throw new Error(JSON.stringify(problems));
const proxy = new Proxy(config, log, { recorder: settings.recorder });
proxy.recorder.configuration = () => settings.text;
process.on('SIGUSR2', async () =>
  log.info({ file: (await proxy.dumpTrace())[0] }, 'trace written'),
);
process.on('SIGHUP', () => {
  proxy.reload(loadConfig(file, {}).config, ({ ok }) => log.info({ ok }, 'reloaded'));
});
process.once('SIGTERM', () => proxy.drain());
log.info('started');
await proxy.stopped;
log.info({ missed: proxy.recorder.recorder.missed }, 'stopped');
