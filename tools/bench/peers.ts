/** The two ends of a bench, as commands: the load generator and the backend, both on the product's own drivers. */
import { once } from 'node:events';
import { createSocket } from 'node:dgram';
import { loadWords, type Load } from './loads.ts';
import { built } from './paths.ts';

export type BackendManner = 'dns' | 'offload';

/** The backend on any free port; it prints "listening PORT". */
export function backendCommand(...manners: readonly BackendManner[]): string[] {
  return [process.execPath, built('tools/bench/echo.js'), '0', ...manners];
}

/** `lane` gives a load generator an address of its own, so that the ports of several do not meet. */
export function loadCommand(port: number, load: Load, lane = 0): string[] {
  const source = `127.0.1.${lane + 1}`;
  return [process.execPath, built('tools/bench/load.js'), `${port}`, source, ...loadWords(load)];
}

/** The kernel's choice, asked for and given back: a configuration cannot say "any port". */
export async function freePort(): Promise<number> {
  const socket = createSocket('udp4');
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const { port } = socket.address();
  socket.close();
  return port;
}
