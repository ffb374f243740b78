/** The public door of the package: run a proxy inside a program of one's own. */
export { loadConfig } from './config/load.ts';
export { parseConfig } from './config/parse.ts';
export { createLog } from './log.ts';
export { Proxy } from './proxy.ts';
