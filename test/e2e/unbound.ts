/** A real DNS server that needs no network: unbound in the foreground, with records of its own. */
import { tmpdir } from 'node:os';
import { Child } from './child.ts';
import { freePort } from './ports.ts';
import { temporaryFile } from './proxy.ts';

export interface Unbound {
  /** Plain DNS. */
  readonly port: number;
  /** DNS behind a PROXY header in every datagram. */
  readonly proxiedPort: number;
  /** Its log: with `logQueries`, a line for each query that names the client. */
  readonly log: Child['stderr'];
}

export interface UnboundOptions {
  /** IPv4 addresses by name. */
  readonly records: Readonly<Record<string, string>>;
  readonly logQueries: boolean;
}

/** Starts unbound and awaits its sockets; it is gone after the test. */
export async function startUnbound({ records, logQueries }: UnboundOptions): Promise<Unbound> {
  const [port, proxiedPort] = [await freePort(), await freePort()];
  const lines = [
    'server:',
    `directory: "${tmpdir()}"`,
    'username: ""',
    'chroot: ""',
    'pidfile: ""',
    'use-syslog: no',
    'module-config: "iterator"',
    'num-threads: 1',
    'so-rcvbuf: 1m',
    'do-tcp: no',
    `interface: 127.0.0.1@${port}`,
    `interface: 127.0.0.1@${proxiedPort}`,
    `proxy-protocol-port: ${proxiedPort}`,
    'access-control: 127.0.0.0/8 allow',
    `log-queries: ${logQueries ? 'yes' : 'no'}`,
    'local-zone: "test." static',
    ...Object.entries(records).map(([name, ip]) => `local-data: "${name}. 3600 IN A ${ip}"`),
    'remote-control:',
    'control-enable: no',
  ];
  const child = new Child('unbound', [
    '-d',
    '-d',
    '-c',
    temporaryFile('unbound.conf', lines.join('\n')),
  ]);
  await child.stderr.first((line) => line.includes('start of service'), 'the start of service');
  return { port, proxiedPort, log: child.stderr };
}
