/**
 * The proxy as a program of one's own would run it, which logs its counters at the end: `node counting-proxy.mjs FILE`,
 * until SIGTERM. The command line has no way to show them yet.
 */
import { readFileSync } from 'node:fs';
import { listenerId, unaccountedDatagrams } from '../../dist/core/index.js';
import { createLog, parseConfig, Proxy } from '../../dist/shell/index.js';

const log = createLog('info');
const { config } = parseConfig(readFileSync(process.argv.at(-1)));
const proxy = new Proxy(config, log);
process.once('SIGTERM', () => proxy.stop());
log.info('started');
await proxy.stopped;
const counters = proxy.figures.counters.get(listenerId(0));
log.info({ counters, unaccounted: unaccountedDatagrams(counters) }, 'counted');
