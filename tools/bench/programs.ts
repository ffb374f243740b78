/**
 * Programs that others made and a bench compares with, each with the smallest configuration that does the same: nginx, dnsdist,
 * Sōzu. Whatever is not there says so and is left out.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { writeProductConfig, type Contender } from './contenders.ts';

/** The room that every contender asks the kernel for, so that none loses what another keeps. */
const SOCKET_BUFFER = 4 << 20;

export interface NginxOptions {
  /** Replies after which a session ends; absent: any number until it is idle. */
  readonly responses?: number;
  /** Seconds until a session is idle. */
  readonly idle?: number;
  readonly name?: string;
}

const MODULE_FOLDERS = ['/usr/lib/nginx/modules', '/usr/lib64/nginx/modules'];

/** The stream module of nginx, one worker. */
export function nginx({ responses, idle = 600, name = 'nginx' }: NginxOptions = {}): Contender {
  return {
    name,
    missing: () => whenAbsent('nginx', 'libnginx-mod-stream'),
    command: ({ port, backendPort, folder }) => {
      const file = join(folder, 'nginx.conf');
      const modules = MODULE_FOLDERS.map((path) => join(path, 'ngx_stream_module.so'));
      const module = modules.find((path) => existsSync(path));
      writeFileSync(
        file,
        `${module === undefined ? '' : `load_module ${module};`}
user root;
daemon off;
worker_processes 1;
worker_rlimit_nofile ${descriptorLimit()};
pid ${join(folder, 'nginx.pid')};
error_log stderr crit;
events { worker_connections 65536; }
stream {
  server {
    listen 127.0.0.1:${port} udp rcvbuf=${SOCKET_BUFFER} sndbuf=${SOCKET_BUFFER};
    proxy_pass 127.0.0.1:${backendPort};
    proxy_timeout ${idle}s;
    ${responses === undefined ? '' : `proxy_responses ${responses};`}
  }
}
`,
      );
      return [findProgram('nginx') ?? 'nginx', '-p', folder, '-e', 'stderr', '-c', file];
    },
  };
}

/** It keeps no flows: it knows an answer by the number in it, so it is for DNS alone. */
export const DNSDIST: Contender = {
  name: 'dnsdist',
  missing: () => whenAbsent('dnsdist', 'dnsdist'),
  command: ({ port, backendPort, folder }) => {
    const file = join(folder, 'dnsdist.conf');
    writeFileSync(
      file,
      `setLocal("127.0.0.1:${port}")
setUDPSocketBufferSizes(${SOCKET_BUFFER}, ${SOCKET_BUFFER})
setACL({"127.0.0.0/8"})
newServer({address="127.0.0.1:${backendPort}"}):setUp()
`,
    );
    return [findProgram('dnsdist') ?? '', '-C', file, '--supervised', '--disable-syslog'];
  },
};

/** Which asks. */
export const DNSPERF: Pick<Contender, 'name' | 'missing'> = {
  name: 'dnsperf',
  missing: () => whenAbsent('dnsperf', 'dnsperf'),
};

/** Sōzu itself, one worker, with the file that this project takes too. */
export function sozu(path: string): Contender {
  return {
    name: 'sozu',
    missing: () => (existsSync(path) ? undefined : `${path} is not there`),
    command: (place) => {
      const socket = join(place.folder, 'sozu.sock');
      const top = `command_socket = "${socket}"\nworker_count = 1\nmax_connections = 20000\n`;
      return [
        path,
        'start',
        '-c',
        writeProductConfig(place, { top, listener: 'max_flows = 16384' }),
      ];
    },
  };
}

/** Where the shell would find a program, or where programs of the system's owner are. */
export function findProgram(name: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

function whenAbsent(name: string, debianPackage: string): string | undefined {
  if (findProgram(name) !== undefined) return undefined;
  return `${name} is not installed (on Debian: the package ${debianPackage})`;
}

/** Descriptors that a program started here may open. */
function descriptorLimit(): string {
  const limits = readFileSync('/proc/self/limits', 'utf8');
  return /^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? '1024';
}
