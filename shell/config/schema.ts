/**
 * The grammar of a configuration file: one zod schema for each table that concerns UDP, with what the manual says about
 * every key beside it. Validation and doc/CONFIGURE.md both come from here, so neither can drift. What a table means
 * together with the others is parse.ts's business.
 */
import * as z from 'zod';
import type { Address } from '../../core/address.ts';
import { LIMITS, LOAD_BALANCINGS, type LoadBalancing, type LoadMetric } from '../../core/config.ts';
import { ipPort } from './ip-port.ts';
import {
  fileName,
  ours,
  sozu,
  u32,
  withFallback,
  withReason,
  type DocumentedTable,
} from './key-notes.ts';
import { ACCESS_LOG_KEYS } from './schema-access-log.ts';
import { WATCHER_TABLES } from './schema-admin.ts';
import { FLOW_KEYS, UDP, type UdpTable } from './schema-flows.ts';
import { HEALTH_KEYS } from './schema-health.ts';
import { FOREIGN_CLUSTER_KEYS, FOREIGN_LISTENER_KEYS } from './sozu-keys.ts';

export interface GlobalTable {
  readonly grace: number;
  readonly log_level: 'error' | 'warn' | 'info' | 'debug' | 'trace';
  readonly worker_count: number;
  readonly workers?: number | 'auto' | undefined;
  readonly steer: 'tuple' | 'source';
  readonly io: 'auto' | 'dgram' | 'mmsg';
  readonly max_connections: number;
  readonly buffer_size: number;
  readonly activate_listeners: boolean;
  readonly command_socket?: string | undefined;
  readonly log_target: string;
  readonly watch_config: boolean;
  readonly recorder: boolean;
  readonly recorder_segment_size: number;
  readonly recorder_folder?: string | undefined;
}

export interface ListenerTable {
  readonly address: Address;
  readonly public_address?: Address | undefined;
  readonly front_timeout?: number | undefined;
  readonly back_timeout?: number | undefined;
  readonly max_rx_datagram_size: number;
  readonly max_flows: number;
  readonly rcvbuf?: number | undefined;
  readonly sndbuf?: number | undefined;
  readonly bind_retry_seconds: number;
}

export interface BackendTable {
  readonly address: Address;
  readonly backend_id?: string | undefined;
  readonly weight: number;
  readonly backup: boolean;
}

export interface ClusterTable {
  readonly load_balancing: LoadBalancing;
  readonly load_metric: LoadMetric;
  readonly max_connections_per_ip: number;
  readonly max_connections_per_subnet: number;
  readonly frontends: readonly { readonly address: Address }[];
  readonly backends: readonly BackendTable[];
  readonly udp: UdpTable;
}

/** Beyond this a number of workers is a slip of the pen. */
const WORKERS_MAX = 256;

const globalShape = {
  grace: ours(
    u32().default(LIMITS.graceSeconds),
    'How long a soft stop lets live flows finish before it closes them. 0 closes at once.',
    's',
  ),
  log_level: sozu(
    z.enum(['error', 'warn', 'info', 'debug', 'trace']).default('info'),
    'How much to log. No level writes a line for each datagram.',
  ),
  worker_count: sozu(
    z.int().min(0).max(65_535).default(1),
    "Sōzu's word for `workers`. (Sōzu: 2.)",
  ),
  workers: withFallback(
    ours(
      z.union([z.int().min(1).max(WORKERS_MAX), z.literal('auto')]).optional(),
      'Threads that move datagrams, each with sockets of its own at the same addresses (`io = "mmsg"` only); ' +
        '`auto`: as many as there are processors. `max_flows` is that of all together, and each has its share. ' +
        'A reload does not change it.',
    ),
    '`worker_count`',
  ),
  steer: withReason(
    ours(
      z.enum(['tuple', 'source']).default('tuple'),
      'How the kernel spreads clients over several workers: by address and port, or so that all of one address come to ' +
        'the same worker. With `tuple` a limit for each source holds in each worker, so a source has at most as many times as ' +
        'much as there are workers; with `source` it is exact, and one hot source is one processor.',
    ),
    'One client that sends much is spread as well as many that send little.',
  ),
  io: withReason(
    ours(
      z.enum(['auto', 'dgram', 'mmsg']).default('auto'),
      'What moves the datagrams: node:dgram, or on Linux batches of them in one system call (needs the package koffi). ' +
        '`auto` takes mmsg where it can be had, and the log says why not.',
    ),
    'Where batches can be had a datagram costs a third to a half; where not, node:dgram serves as well.',
  ),
  max_connections: sozu(
    u32().default(LIMITS.maxConnections),
    'Upper bound of an automatic `max_flows`. 0 = no bound.',
    'flows',
  ),
  buffer_size: sozu(
    u32().default(LIMITS.bufferSize),
    'Upper bound of `max_rx_datagram_size`. 0 = no bound.',
    'bytes',
  ),
  activate_listeners: sozu(
    z.boolean().default(true),
    'This version binds every UDP listener at start; `false` is a warning.',
  ),
  command_socket: withFallback(
    sozu(
      fileName(0).optional(),
      'The Unix socket that control commands use; a relative path starts at the folder of this file. ' +
        'Empty: none. See doc/CONTROL.md.',
    ),
    'see doc/CONTROL.md',
  ),
  log_target: sozu(
    z.string().default('stdout'),
    'Where the log goes: `stdout`, or `file://` and an absolute path. SIGUSR1 opens the file anew.',
  ),
  watch_config: withReason(
    ours(z.boolean().default(false), 'Read this file again whenever it changes, as on SIGHUP.'),
    'Whoever edits a file by hand may save it before it is right.',
  ),
  recorder: withReason(
    ours(
      z.boolean().default(true),
      'Keep the last inputs in memory, to be written as a trace: see [TRACES.md](TRACES.md).',
    ),
    'What went wrong is known afterwards, and then it is too late to switch it on.',
  ),
  recorder_segment_size: withReason(
    ours(
      z.int().min(65_536).max(268_435_456).default(4_194_304),
      'Size of each of its two segments, at least: about 13 bytes go for an input, four inputs for a question and its answer. One that begins with a long snapshot has a quarter of its length.',
      'bytes',
    ),
    'Room for 80,000 questions and their answers in each, and it is hardly noticed in memory.',
  ),
  recorder_folder: withFallback(
    ours(fileName().optional(), 'Where traces are written, with mode 0600.'),
    'the system’s folder for temporary files',
  ),
};

const listenerShape = {
  protocol: sozu(z.enum(['udp']), 'Listeners of other protocols are named and skipped.'),
  address: sozu(
    ipPort(),
    'Where clients send to: the identity of the listener. Port 0 and host names are refused.',
  ),
  public_address: sozu(ipPort().optional(), 'Accepted; no effect on datagrams.'),
  front_timeout: idleTime('A flow is idle this long after its last client datagram.'),
  back_timeout: idleTime('A flow is idle this long after its last backend datagram.'),
  max_rx_datagram_size: sozu(
    u32().default(LIMITS.maxRxDatagramSize),
    'A longer client datagram is dropped and counted. Clamped to `buffer_size` and to 65507. ' +
      'Replies may have up to 65507 bytes.',
    'bytes',
  ),
  max_flows: sozu(
    u32().default(0),
    'Live flows at most; more are shed. 0 = 70 % of the descriptor limit, at most `max_connections`.',
    'flows',
  ),
  rcvbuf: withReason(
    withFallback(
      ours(
        bufferSize(),
        'Room in the kernel for datagrams of clients that wait. It grants at most net.core.rmem_max.',
        'bytes',
      ),
      `\`${LIMITS.socketBuffer}\``,
    ),
    'What does not fit while the process is busy is lost. Linux grants 212,992 unless told otherwise.',
  ),
  sndbuf: withReason(
    withFallback(
      ours(bufferSize(), 'The same for replies, up to net.core.wmem_max.', 'bytes'),
      `\`${LIMITS.socketBuffer}\``,
    ),
    'As for `rcvbuf`.',
  ),
  bind_retry_seconds: withReason(
    ours(
      u32().default(0),
      'Try again this often where the address cannot be bound, because it comes later. 0 = a failure is final.',
      's',
    ),
    'An address that cannot be bound is most often a mistake, and a start that fails tells it at once.',
  ),
  ...foreign(FOREIGN_LISTENER_KEYS),
};

const backendShape = {
  address: sozu(ipPort(), 'Where datagrams go; also the identity that HRW and Maglev hash.'),
  backend_id: withFallback(
    sozu(
      z.string().min(1).optional(),
      'A name for those who list or explain flows. The log names backends by address.',
    ),
    '`<cluster>-<index>-<address>`',
  ),
  weight: sozu(
    z.int().min(0).max(255).default(LIMITS.backendWeight),
    'Share of new flows under RANDOM, HRW and MAGLEV. 0 counts as 1 under HRW and MAGLEV, and as ' +
      'never under RANDOM.',
  ),
  backup: sozu(z.boolean().default(false), 'Used only when no other backend is eligible.'),
  sticky_id: sozu(z.string().optional(), 'Accepted; HTTP only.'),
};

const frontendShape = {
  address: sozu(
    ipPort(),
    'A declared UDP listener. An address with a TCP listener, or with none, is skipped with a notice.',
  ),
  tags: sozu(z.object({}).catchall(z.string()).optional(), 'Accepted; not used yet.'),
};

const clusterShape = {
  protocol: sozu(z.enum(['tcp']), 'Sōzu has no "udp" here: the listener makes a cluster UDP.'),
  frontends: sozu(
    z.array(z.strictObject(frontendShape)),
    'The listeners that lead to this cluster. A UDP listener leads to one cluster.',
  ),
  backends: sozu(
    z.array(z.strictObject(backendShape)).default([]),
    'The servers. None is legal: every datagram is dropped and counted.',
  ),
  load_balancing: sozu(
    z.enum(LOAD_BALANCINGS).default('ROUND_ROBIN'),
    'How a new flow gets its backend.',
  ),
  load_metric: sozu(
    z.enum(['CONNECTIONS', 'REQUESTS', 'CONNECTION_TIME']).default('CONNECTIONS'),
    'What LEAST_LOADED and POWER_OF_TWO compare.',
  ),
  max_connections_per_ip: sozu(
    u32().default(0),
    'Live flows per client address at most. 0 = unlimited. The global key is not applied.',
    'flows',
  ),
  max_connections_per_subnet: sozu(
    u32().default(0),
    'Live flows per client subnet at most. 0 = unlimited. (Sōzu after 2.1.0.)',
    'flows',
  ),
  udp: sozu(UDP.prefault({}), 'How flows behave.'),
  ...foreign(FOREIGN_CLUSTER_KEYS),
};

export const GLOBAL: z.ZodType<GlobalTable> = z.object(globalShape);
/** The top-level keys that mean something here, tables apart. */
export const GLOBAL_KEYS: readonly string[] = Object.keys(globalShape);
export const LISTENER: z.ZodType<ListenerTable> = z.strictObject(listenerShape);
export const CLUSTER: z.ZodType<ClusterTable> = z.strictObject(clusterShape);
export const BACKEND: z.ZodType<BackendTable> = z.strictObject(backendShape);

/** Every table, in the order of the manual. */
export const TABLES: readonly DocumentedTable[] = [
  { header: '(top level)', shape: globalShape },
  { header: '[[listeners]]', shape: listenerShape },
  { header: '[clusters.<id>]', shape: clusterShape },
  { header: 'clusters.<id>.frontends[]', shape: frontendShape },
  { header: 'clusters.<id>.backends[]', shape: backendShape },
  ...FLOW_KEYS,
  HEALTH_KEYS,
  ACCESS_LOG_KEYS,
  ...WATCHER_TABLES,
];

function idleTime(meaning: string): z.ZodOptional<z.ZodInt> {
  const about = `${meaning} Wins over the preset of the cluster. The global key is not inherited.`;
  return withFallback(sozu(u32().optional(), about, 's'), '`30`, or the preset’s');
}

/** Half of what an int holds: the kernel doubles it. */
function bufferSize(): z.ZodOptional<z.ZodInt> {
  return z.int().min(1).max(0x3fff_ffff).optional();
}

function foreign(keys: readonly string[]): Record<string, z.ZodOptional<z.ZodUnknown>> {
  return Object.fromEntries(keys.map((key) => [key, z.unknown().optional()]));
}
