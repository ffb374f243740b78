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

export const PRODUCT: Contender = {
  name: 'sozu-udp',
  command: (place) => {
    const file = join(ROOT, '.cache/bench/bench.toml');
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, productConfig(place));
    return [process.execPath, built('shell/main.js'), 'run', '--config', file];
  },
};

function yardstickCommand({ port, backendPort }: Place): string[] {
  return [process.execPath, built('tools/bench/yardstick.js'), `${port}`, `${backendPort}`];
}

function productConfig({ port, backendPort }: Place): string {
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
`;
}
