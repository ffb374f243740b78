/** Where the control socket is, for the proxy and for those who look for it. */
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

/** Names the socket where nobody else does; empty for none. */
export const SOCKET_VARIABLE = 'SOZU_UDP_SOCKET';

type Environment = Readonly<Record<string, string | undefined>>;

/** Undefined where there is to be none. `written`: the key of `file`, whose folder a relative path starts from. */
export function serverSocket(
  written: string | undefined,
  file: string,
  environment: Environment = process.env,
): string | undefined {
  if (written === undefined) return clientSocket(undefined, environment);
  return written === '' ? undefined : resolve(dirname(file), written);
}

/** `given`: the option of a command. */
export function clientSocket(
  given: string | undefined,
  environment: Environment = process.env,
): string | undefined {
  const named = given ?? environment[SOCKET_VARIABLE];
  if (named === undefined) return defaultSocket(environment);
  return named === '' ? undefined : resolve(named);
}

/** A folder of this user alone. */
function defaultSocket(environment: Environment): string {
  const uid = process.getuid?.() ?? 0;
  const runtime = environment['XDG_RUNTIME_DIR'];
  if (uid === 0) return '/run/sozu-udp/control.sock';
  if (runtime !== undefined && runtime !== '') return join(runtime, 'sozu-udp', 'control.sock');
  return join(tmpdir(), `sozu-udp-${uid}`, 'control.sock');
}
