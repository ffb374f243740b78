/**
 * The programs that a paired run can measure: how each is told where to listen and where its
 * backend is.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { built, ROOT } from './paths.ts';

export interface Place {
  readonly port: number;
  readonly backendPort: number;
}

export interface Contender {
  readonly name: string;
  command(place: Place): readonly string[];
}

export const YARDSTICK: Contender = { name: 'yardstick', command: yardstickCommand };

/** The yardstick against itself: how far from 1 its ratio lies is how far to trust the others. */
export const CONTROL: Contender = { name: 'control', command: yardstickCommand };

/** A thousand blocks that hold nobody, so that each look-up of a client has all its steps. */
const DENIED = Array.from({ length: 1_000 }, (_, at) => `"10.${at >> 8}.${at & 255}.0/24"`);

const LIMITS_TABLES = `[clusters.bench.udp.limits]
new_flows_per_second = 1000000
datagrams_per_second = 100000000
amplification_factor = 100
deny = [${DENIED.join(', ')}]
`;

export const PRODUCT: Contender = productOf('sozu-udp', ROOT);

/** With every limit on, none of which is ever reached. */
export const LIMITED: Contender = productOf('with limits', ROOT, LIMITS_TABLES);

/** What a datagram costs while the recorder is off, and while it is on. */
export const UNRECORDED: Contender = productOf('recorder off', ROOT, '', 'recorder = false\n');
export const RECORDED: Contender = productOf('recorder on', ROOT);
export const UNRECORDED_AGAIN: Contender = productOf('control', ROOT, '', 'recorder = false\n');

/**
 * The same program as built in another checkout, under any name. Its folder must have been built; throws when it was not.
 */
export function productOf(name: string, root: string, limits = '', globals = ''): Contender {
  return {
    name,
    command: (place) => {
      const file = join(ROOT, `.cache/bench/${name.replaceAll(' ', '-')}.toml`);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, globals + productConfig(place, limits));
      return [process.execPath, built('shell/main.js', root), 'run', '--config', file];
    },
  };
}

function yardstickCommand({ port, backendPort }: Place): string[] {
  return [process.execPath, built('tools/bench/yardstick.js'), `${port}`, `${backendPort}`];
}

function productConfig({ port, backendPort }: Place, limits: string): string {
  return `[[listeners]]
protocol = "udp"
address = "127.0.0.1:${port}"
max_flows = 4096

[clusters.bench]
protocol = "tcp"
load_balancing = "HRW"
frontends = [{ address = "127.0.0.1:${port}" }]
backends = [{ address = "127.0.0.1:${backendPort}", backend_id = "echo" }]

[clusters.bench.udp]
responses = 0
requests = 0
${limits}`;
}
