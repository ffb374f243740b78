/**
 * The programs that a paired run can measure: how each is told where to listen and where its backend is. Those of others are in
 * programs.ts and floors.ts.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadLibc } from '../../shell/drivers/libc.ts';
import { built, commandOf, ROOT } from './paths.ts';

export interface Place {
  readonly port: number;
  readonly backendPort: number;
  /** A folder of its own, which is gone when the bench is. */
  readonly folder: string;
}

export interface Contender {
  readonly name: string;
  /** Why it cannot be had here; undefined: it can. */
  missing(): string | undefined;
  command(place: Place): readonly string[];
}

/** What a configuration of this product says besides where to listen and where the backend is: lines of TOML. */
export interface ProductText {
  readonly top?: string;
  /** In place of long timeouts, so that no flow ends. */
  readonly listener?: string;
  /** In place of any number of datagrams both ways. */
  readonly udp?: string;
  readonly tables?: string;
}

export const YARDSTICK: Contender = yardstick('yardstick');

/** The yardstick against itself: how far from 1 its ratio lies is how far to trust the others. */
export const CONTROL: Contender = yardstick('control');

/** A thousand blocks that hold nobody, so that each look-up of a client has all its steps. */
const DENIED = Array.from({ length: 1_000 }, (_, at) => `"10.${at >> 8}.${at & 255}.0/24"`);

const LIMITS_TABLES = `[clusters.bench.udp.limits]
new_flows_per_second = 1000000
datagrams_per_second = 100000000
amplification_factor = 100
deny = [${DENIED.join(', ')}]
`;

const DGRAM = 'io = "dgram"\n';
export const PRODUCT: Contender = productOf('sozu-udp dgram', ROOT, { top: DGRAM });

/** With every limit on, none of which is ever reached. */
export const LIMITED: Contender = productOf('with limits', ROOT, {
  top: DGRAM,
  tables: LIMITS_TABLES,
});

/** What a datagram costs while the recorder is off, and while it is on. */
const OFF = 'recorder = false\n';
export const UNRECORDED: Contender = productOf('recorder off', ROOT, { top: DGRAM + OFF });
export const RECORDED: Contender = productOf('recorder on', ROOT, { top: DGRAM });
export const UNRECORDED_AGAIN: Contender = productOf('control', ROOT, { top: DGRAM + OFF });

/** The product with batched system calls, as it is by default, and without the recorder, which no other contender has. */
export const MMSG: Contender = batching('sozu-udp mmsg', {});
export const MMSG_UNRECORDED: Contender = batching('mmsg, recorder off', { top: OFF });

/** For DNS: a flow for each query, or one for each client. nginx too expects its replies of each datagram, not of a session. */
export const DNS_ONE: Contender = batching('mmsg, responses = 1', {
  udp: 'responses = 1\nrequests = 0\nresponses_per_request = true\n',
});
export const DNS_MANY: Contender = batching('mmsg, responses = 0', {});

/** The product on the mmsg driver, which needs koffi. */
export function batching(name: string, text: ProductText): Contender {
  return {
    ...productOf(name, ROOT, { ...text, top: `io = "mmsg"\n${text.top ?? ''}` }),
    missing: mmsgIsMissing,
  };
}

/** Why there is no mmsg driver here, if there is none. */
export function mmsgIsMissing(): string | undefined {
  const libc = loadLibc();
  return typeof libc === 'string' ? `no mmsg: ${libc}` : undefined;
}

/**
 * The same program as built in another checkout, under any name. Its folder must have been built; throws when it was not.
 */
export function productOf(name: string, root: string, text: ProductText = {}): Contender {
  return {
    name,
    missing: () => undefined,
    command: (place) => [...commandOf(root), 'run', '--config', writeProductConfig(place, text)],
  };
}

/** Writes a configuration in the contender's folder and says where. */
export function writeProductConfig(place: Place, text: ProductText): string {
  const file = join(place.folder, 'proxy.toml');
  writeFileSync(file, productConfig(place, text));
  return file;
}

function yardstick(name: string): Contender {
  return {
    name,
    missing: () => undefined,
    command: ({ port, backendPort }) => [
      process.execPath,
      built('tools/bench/yardstick.js'),
      `${port}`,
      `${backendPort}`,
    ],
  };
}

const LISTENER = 'max_flows = 16384\nfront_timeout = 600\nback_timeout = 600\n';
const UDP = 'responses = 0\nrequests = 0\n';

function productConfig(
  { port, backendPort }: Place,
  { top = '', listener = LISTENER, udp = UDP, tables = '' }: ProductText,
): string {
  return `${top}
[[listeners]]
protocol = "udp"
address = "127.0.0.1:${port}"
${listener}
[clusters.bench]
protocol = "tcp"
load_balancing = "HRW"
frontends = [{ address = "127.0.0.1:${port}" }]
backends = [{ address = "127.0.0.1:${backendPort}", backend_id = "echo" }]

[clusters.bench.udp]
${udp}
${tables}`;
}
