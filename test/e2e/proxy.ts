/** The real program under test: `node dist/shell/main.js`, with a configuration in a file of its own. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { Backend } from './backend.ts';
import { Child, type Exit } from './child.ts';
import { Mailbox } from './mailbox.ts';

/** Built before the tests, by `tsc -b`. */
export const MAIN: string = fileURLToPath(new URL('../../dist/shell/main.js', import.meta.url));

/** The command as it is installed. */
export const COMMAND: string = fileURLToPath(new URL('../../shell/sozu-udp', import.meta.url));

export type LogLine = Readonly<Record<string, unknown>>;

export class ProxyProcess {
  readonly child: Child;
  /** Its configuration. */
  readonly file: string;
  readonly logs: Mailbox<LogLine> = new Mailbox('the proxy’s log');

  constructor(child: Child, file: string) {
    this.child = child;
    this.file = file;
    child.stdout.each((line) => {
      const parsed = parseJson(line);
      if (typeof parsed === 'object' && parsed !== null) this.logs.push({ ...parsed });
    });
    void child.exit.then(({ code }) => {
      this.logs.close(`but it ended with ${code}; it said\n${child.everything()}`);
    });
  }

  /** The nth log line with this message about this backend, from 1, past or to come. */
  told(message: string, backend: string, nth = 1): Promise<LogLine> {
    const about = (line: LogLine): boolean =>
      line['msg'] === message && line['backend'] === backend;
    return this.logs.first(
      (line) => about(line) && this.logs.all.filter(about).indexOf(line) === nth - 1,
      `"${message}" of ${backend}, number ${nth}`,
    );
  }

  /** The first log line with this message, past or to come. */
  logged(message: string): Promise<LogLine> {
    return this.logs.first(({ msg }) => msg === message, `"${message}"`);
  }

  signal(signal: NodeJS.Signals): void {
    this.child.signal(signal);
  }

  get exit(): Promise<Exit> {
    return this.child.exit;
  }

  /** SIGTERM, then its exit code and how many flows the end of the grace time cut short. */
  async softStop(): Promise<{ code: number | null; flowsClosed: unknown }> {
    this.signal('SIGTERM');
    const { code } = await this.exit;
    const flowsClosed = this.logs.all.find(({ msg }) => msg === 'stopped')?.['flowsClosed'];
    return { code, flowsClosed };
  }
}

/** Starts the proxy and awaits its listeners. `command` is what Node runs, before the file's name. */
export async function startProxy(
  content: string,
  command: readonly string[] = [MAIN, 'run', '--config'],
): Promise<ProxyProcess> {
  const file = temporaryFile('proxy.toml', content);
  const proxy = new ProxyProcess(new Child(process.execPath, [...command, file]), file);
  await proxy.logged('started');
  return proxy;
}

/** Writes a new configuration, asks for it by SIGHUP, and awaits that the proxy has it. */
export async function rewriteConfig(proxy: ProxyProcess, content: string): Promise<void> {
  const isReload = ({ msg }: LogLine): boolean => msg === 'reloaded';
  const before = proxy.logs.all.filter(isReload).length;
  writeFileSync(proxy.file, content);
  proxy.signal('SIGHUP');
  await proxy.logs.first(
    (line) => isReload(line) && proxy.logs.all.filter(isReload).indexOf(line) === before,
    'a reload',
  );
}

type Keys = Readonly<Record<string, string | number | boolean | readonly string[]>>;

export interface Setup {
  /** Listener addresses, `ip:port`. */
  readonly listen: string | readonly string[];
  readonly backends: readonly (Backend | string)[];
  /** Keys at the top; `grace` is 1 s unless given, because a stop with live flows waits for it. */
  readonly top?: Keys;
  readonly listener?: Keys;
  readonly cluster?: Keys;
  readonly udp?: Keys;
  /** Without it nobody probes. */
  readonly health?: Keys;
}

/** A configuration with one cluster that all its listeners lead to. */
export function toml(setup: Setup): string {
  const listen = [setup.listen].flat();
  const endpoints = setup.backends.map((one) => (typeof one === 'string' ? one : one.endpoint));
  return [
    ...keys({ grace: 1, ...setup.top }),
    ...listen.flatMap((address) => [
      '[[listeners]]',
      ...keys({ protocol: 'udp', address, ...setup.listener }),
    ]),
    '[clusters.e2e]',
    ...keys({ protocol: 'tcp', ...setup.cluster }),
    `frontends = [${listen.map((address) => `{ address = "${address}" }`).join(', ')}]`,
    `backends = [${endpoints.map((address) => `{ address = "${address}" }`).join(', ')}]`,
    '[clusters.e2e.udp]',
    ...keys(setup.udp ?? {}),
    ...(setup.health === undefined ? [] : ['[clusters.e2e.udp.health]', ...keys(setup.health)]),
    '',
  ].join('\n');
}

/** A file that is gone after the test. */
export function temporaryFile(name: string, content: string | Uint8Array): string {
  const folder = mkdtempSync(join(tmpdir(), 'sozu-udp-e2e-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, name);
  writeFileSync(file, content);
  return file;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function keys(table: Keys): string[] {
  return Object.entries(table).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
}
