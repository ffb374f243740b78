/** Backends in processes of their own, which a test may kill or stop. */
import { fileURLToPath } from 'node:url';
import { Child } from './child.ts';
import { freePort } from './ports.ts';

const PROGRAM = fileURLToPath(new URL('echo-backend.mjs', import.meta.url));

export interface Echo {
  readonly child: Child;
  readonly port: number;
  readonly endpoint: string;
}

/** Answers `name: payload`, unless `mute` stands among `more`; on a free port unless given. */
export async function startEcho(
  name: string,
  at?: number,
  ...more: readonly string[]
): Promise<Echo> {
  const port = at ?? (await freePort());
  const child = new Child(process.execPath, [PROGRAM, String(port), name, ...more]);
  await child.stdout.first((line) => line === 'ready', 'its sockets');
  return { child, port, endpoint: `127.0.0.1:${port}` };
}
