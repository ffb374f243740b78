/**
 * The grammar of a configuration file: one zod schema for each table that concerns UDP, with what the manual says about
 * every key beside it. Validation and doc/CONFIGURE.md both come from here, so neither can drift. What a table means
 * together with the others is parse.ts's business.
 */
import * as z from 'zod';
import type { Address } from '../../core/address.ts';
import { LIMITS, type LoadBalancing, type LoadMetric } from '../../core/config.ts';
import { DATAGRAM_BYTES_MAX } from '../../core/contract.ts';
import { LOCAL_HEADER } from '../../core/health/probe-contract.ts';
import type { Exchange } from '../../core/presets.ts';
import { ipPort } from './ip-port.ts';
import { FOREIGN_CLUSTER_KEYS, FOREIGN_LISTENER_KEYS } from './sozu-keys.ts';

/** What the manual says of a key. */
export interface KeyNotes {
  readonly meaning: string;
  readonly unit?: string;
  /** Where the default is not a plain value of the schema. */
  readonly fallback?: string;
  /** `Sōzu`: Sōzu's word with Sōzu's meaning. `ours`: Sōzu refuses the key. */
  readonly origin: 'Sōzu' | 'ours';
}

export interface GlobalTable {
  readonly grace: number;
  readonly log_level: 'error' | 'warn' | 'info' | 'debug' | 'trace';
  readonly worker_count: number;
  readonly max_connections: number;
  readonly buffer_size: number;
  readonly activate_listeners: boolean;
}

export interface ListenerTable {
  readonly address: Address;
  readonly public_address?: Address | undefined;
  readonly front_timeout: number;
  readonly back_timeout: number;
  readonly max_rx_datagram_size: number;
  readonly max_flows: number;
}

interface BackendTable {
  readonly address: Address;
  readonly backend_id?: string | undefined;
  readonly weight: number;
  readonly backup: boolean;
}

export interface HealthTable {
  readonly mode: 'HEALTH_OFF' | 'TCP_PROBE' | 'UDP_PROBE';
  readonly tcp_port?: number | undefined;
  readonly rise: number;
  readonly fall: number;
  readonly fail_open: boolean;
  readonly udp_probe_payload?: string | undefined;
  readonly udp_probe_expect_reply: boolean;
  readonly probe_interval_seconds: number;
  readonly probe_timeout_seconds: number;
}

export interface UdpTable {
  readonly affinity_key: 'SOURCE_IP' | 'SOURCE_IP_PORT';
  readonly responses: number;
  readonly requests: number;
  readonly send_proxy_protocol: boolean;
  readonly proxy_protocol_every_datagram: boolean;
  readonly reject_client_header: boolean;
  readonly allow_backend_as_client: boolean;
  readonly subnet_prefix_ipv4: number;
  readonly subnet_prefix_ipv6: number;
  readonly exchange?: Exchange | undefined;
  readonly passive_health: boolean;
  readonly health?: HealthTable | undefined;
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

const notes = z.registry<KeyNotes>();

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
    'This version runs one worker, whatever the number; above 1 `check` warns. (Sōzu: 2.)',
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
};

const listenerShape = {
  protocol: sozu(z.enum(['udp']), 'Listeners of other protocols are named and skipped.'),
  address: sozu(
    ipPort(),
    'Where clients send to: the identity of the listener. Port 0 and host names are refused.',
  ),
  public_address: sozu(ipPort().optional(), 'Accepted; no effect on datagrams.'),
  front_timeout: sozu(
    u32().default(LIMITS.frontTimeoutSeconds),
    'A flow is idle this long after its last client datagram. The global key is not inherited.',
    's',
  ),
  back_timeout: sozu(
    u32().default(LIMITS.backTimeoutSeconds),
    'A flow is idle this long after its last backend datagram. The global key is not inherited.',
    's',
  ),
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
  ...foreign(FOREIGN_LISTENER_KEYS),
};

const backendShape = {
  address: sozu(ipPort(), 'Where datagrams go; also the identity that HRW and Maglev hash.'),
  backend_id: withFallback(
    sozu(z.string().min(1).optional(), 'Name in logs and metrics.'),
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

/** One datagram carries it behind a PROXY header that says LOCAL. */
const PROBE_PAYLOAD_BYTES_MAX = DATAGRAM_BYTES_MAX - LOCAL_HEADER.length;

const healthShape = {
  mode: sozu(
    z.enum(['HEALTH_OFF', 'TCP_PROBE', 'UDP_PROBE']).default('TCP_PROBE'),
    'TCP_PROBE connects to a companion TCP port and sends nothing; UDP_PROBE sends the payload to the backend and needs one.',
  ),
  tcp_port: withFallback(
    sozu(z.int().min(1).max(65_535).optional(), 'Port of the TCP probe.'),
    'the port of the backend',
  ),
  rise: sozu(u32().default(2), 'Successes in a row until a backend is up. 0 counts as 1.'),
  fall: sozu(u32().default(3), 'Failures in a row until a backend is down. 0 counts as 1.'),
  fail_open: sozu(
    z.boolean().default(true),
    'Use every backend when all are down; `false`: new flows are dropped (`no_backend`) then.',
  ),
  udp_probe_payload: sozu(
    z
      .string()
      .refine((text) => utf8(text).length <= PROBE_PAYLOAD_BYTES_MAX, {
        error: `longer than ${PROBE_PAYLOAD_BYTES_MAX} bytes, what one datagram carries`,
      })
      .optional(),
    'What a UDP probe sends, as UTF-8. Any datagram that comes back is an answer.',
  ),
  udp_probe_expect_reply: ours(
    z.boolean().default(true),
    'Silence fails a UDP probe. `false`: silence says nothing, and only a refusal (ICMP) fails it.',
  ),
  probe_interval_seconds: sozu(
    u32().default(5),
    'Between the starts of two probes of one backend: three quarters of this to all of it, drawn. 0 counts as 1.',
    's',
  ),
  probe_timeout_seconds: sozu(u32().default(2), 'Time for an answer. 0 counts as 1.', 's'),
};

const udpShape = {
  affinity_key: sozu(
    z.enum(['SOURCE_IP', 'SOURCE_IP_PORT']).default('SOURCE_IP'),
    'What chooses the backend of a new flow under HRW and MAGLEV. A flow is always one client port.',
  ),
  responses: sozu(
    u32().default(0),
    'Close a flow after this many replies. 0 = never.',
    'datagrams',
  ),
  requests: sozu(
    u32().default(0),
    'Close a flow after this many client datagrams, before their replies. 0 = never.',
    'datagrams',
  ),
  send_proxy_protocol: sozu(
    z.boolean().default(false),
    'Put a PROXY protocol v2 header with the true client address before the payload.',
  ),
  proxy_protocol_every_datagram: sozu(
    z.boolean().default(false),
    'The header on every datagram, as the PROXY protocol text and every DNS server want it; ' +
      '`false`: on the first of a flow only.',
  ),
  reject_client_header: ours(
    z.boolean().default(true),
    'Where only the first datagram carries a header: refuse a later one of the client that begins like a header.',
  ),
  allow_backend_as_client: ours(
    z.boolean().default(false),
    'Serve a client whose address is a backend’s. Otherwise its datagrams are Invalid: they could circle.',
  ),
  subnet_prefix_ipv4: ours(
    z.int().min(0).max(32).default(LIMITS.subnetPrefixIpv4),
    'Length of the subnet that `max_connections_per_subnet` counts, IPv4.',
    'bits',
  ),
  subnet_prefix_ipv6: ours(
    z.int().min(0).max(128).default(LIMITS.subnetPrefixIpv6),
    'The same for IPv6.',
    'bits',
  ),
  exchange: ours(
    z.enum(['request-response', 'one-way']).optional(),
    'Whether a backend answers each request. Only where it says `"request-response"` do missing answers count.',
  ),
  passive_health: ours(
    z.boolean().default(true),
    'Take a backend out of rotation for a while when its traffic speaks against it: refusals, or missing answers.',
  ),
  health: sozu(
    z
      .strictObject(healthShape)
      .refine((health) => health.mode !== 'UDP_PROBE' || (health.udp_probe_payload ?? '') !== '', {
        path: ['udp_probe_payload'],
        error: 'missing: UDP_PROBE needs a payload to send',
        params: { fix: 'write udp_probe_payload, or mode = "TCP_PROBE"' },
      })
      .optional(),
    'Health checks. Without the table nobody probes, and every backend counts as up.',
  ),
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
    z
      .enum(['ROUND_ROBIN', 'RANDOM', 'LEAST_LOADED', 'POWER_OF_TWO', 'HRW', 'MAGLEV'])
      .default('ROUND_ROBIN'),
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
  udp: sozu(z.strictObject(udpShape).prefault({}), 'How flows behave.'),
  ...foreign(FOREIGN_CLUSTER_KEYS),
};

export const GLOBAL: z.ZodType<GlobalTable> = z.object(globalShape);
/** The top-level keys that mean something here, `listeners` and `clusters` apart. */
export const GLOBAL_KEYS: readonly string[] = Object.keys(globalShape);
export const LISTENER: z.ZodType<ListenerTable> = z.strictObject(listenerShape);
export const CLUSTER: z.ZodType<ClusterTable> = z.strictObject(clusterShape);
/** For a `udp` block that stands where no listener leads. */
export const UDP: z.ZodType<UdpTable> = z.strictObject(udpShape);

export interface DocumentedTable {
  /** As an operator writes it. */
  readonly header: string;
  readonly shape: Readonly<Record<string, z.ZodType>>;
}

/** Every table, in the order of the manual. */
export const TABLES: readonly DocumentedTable[] = [
  { header: '(top level)', shape: globalShape },
  { header: '[[listeners]]', shape: listenerShape },
  { header: '[clusters.<id>]', shape: clusterShape },
  { header: 'clusters.<id>.frontends[]', shape: frontendShape },
  { header: 'clusters.<id>.backends[]', shape: backendShape },
  { header: '[clusters.<id>.udp]', shape: udpShape },
  { header: '[clusters.<id>.udp.health]', shape: healthShape },
];

/** Undefined for the keys of other protocols, which the manual only lists. */
export function notesOf(schema: z.ZodType): KeyNotes | undefined {
  return notes.get(schema);
}

function sozu<S extends z.ZodType>(schema: S, meaning: string, unit?: string): S {
  return note(schema, { meaning, origin: 'Sōzu', ...(unit === undefined ? {} : { unit }) });
}

function ours<S extends z.ZodType>(schema: S, meaning: string, unit?: string): S {
  return note(schema, { meaning, origin: 'ours', ...(unit === undefined ? {} : { unit }) });
}

function withFallback<S extends z.ZodType>(schema: S, fallback: string): S {
  const known = notes.get(schema);
  return known === undefined ? schema : note(schema, { ...known, fallback });
}

function note<S extends z.ZodType>(schema: S, about: KeyNotes): S {
  notes.add(schema, about);
  return schema;
}

/** As the probe sends it. */
export function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function u32(): z.ZodInt {
  return z.int().min(0).max(0xffff_ffff);
}

function foreign(keys: readonly string[]): Record<string, z.ZodOptional<z.ZodUnknown>> {
  return Object.fromEntries(keys.map((key) => [key, z.unknown().optional()]));
}
