/**
 * The grammar of `[clusters.<id>.udp]` and of its limits; see schema.ts for the others. A key that a preset may set has no
 * default here, so that "not written" stays apart from every value (cluster-settings.ts gives the preset its say).
 */
import * as z from 'zod';
import type { Address } from '../../core/address.ts';
import { AMPLIFICATION_DEFAULTS } from '../../core/amplification.ts';
import { ACCESS_RULES_MAX, type Cidr } from '../../core/cidr.ts';
import { LIMITS, NO_SOURCE_RATES, type OnBackendLoss } from '../../core/config.ts';
import { PRESET_NAMES, type Exchange, type PresetName } from '../../core/presets.ts';
import { COLUMNS_MAX } from '../../core/token-sketch.ts';
import { addressBlocks, ownAddresses } from './ip-lists.ts';
import { ours, sozu, u32, withFallback, withReason, type DocumentedTable } from './key-notes.ts';
import { HEALTH, type HealthTable } from './schema-health.ts';

export interface LimitsTable {
  readonly new_flows_per_second: number;
  readonly new_flows_burst?: number | undefined;
  readonly datagrams_per_second: number;
  readonly datagrams_burst?: number | undefined;
  readonly sketch_columns: number;
  readonly allow?: readonly Cidr[] | undefined;
  readonly deny?: readonly Cidr[] | undefined;
  readonly amplification_factor?: number | undefined;
  readonly amplification_floor?: number | undefined;
}

export interface UdpTable {
  readonly preset?: PresetName | undefined;
  readonly affinity_key: 'SOURCE_IP' | 'SOURCE_IP_PORT';
  readonly responses?: number | undefined;
  readonly responses_per_request?: boolean | undefined;
  readonly requests: number;
  readonly requests_linger?: boolean | undefined;
  readonly late_reply_grace_ms: number;
  readonly forward_empty_datagrams?: boolean | undefined;
  readonly send_proxy_protocol: boolean;
  readonly proxy_protocol_every_datagram?: boolean | undefined;
  readonly reject_client_header: boolean;
  readonly allow_backend_as_client?: boolean | undefined;
  readonly subnet_prefix_ipv4: number;
  readonly subnet_prefix_ipv6: number;
  readonly exchange?: Exchange | undefined;
  readonly passive_health: boolean;
  readonly on_backend_down?: OnBackendLoss | undefined;
  readonly on_backend_removed: OnBackendLoss;
  readonly upstream_source: readonly Address[];
  readonly health?: HealthTable | undefined;
  readonly limits?: LimitsTable | undefined;
}

/** Fewer columns than this are no protection: a few strangers would already share a bucket. */
const COLUMNS_MIN = 256;

const limitsShape = {
  new_flows_per_second: withReason(
    ours(
      u32().default(NO_SOURCE_RATES.newFlowsPerSecond),
      'Flows that one client address may open each second; more are dropped (`new_flow_rate`). 0 = unlimited.',
      'flows/s',
    ),
    'No figure is right for everybody: behind one address stands a person, or a whole provider.',
  ),
  new_flows_burst: withReason(
    withFallback(
      ours(
        u32().min(1).optional(),
        'Flows that an address may open at once after a pause.',
        'flows',
      ),
      '`new_flows_per_second`',
    ),
    'Whoever keeps to the rate from second to second is never refused, however his flows lie within one.',
  ),
  datagrams_per_second: withReason(
    ours(
      u32().default(NO_SOURCE_RATES.datagramsPerSecond),
      'Datagrams of one flow each second, and of one client address for those without a flow; ' +
        'more are dropped (`datagram_rate`). 0 = unlimited.',
      'datagrams/s',
    ),
    'The same; and what one flow may carry, only its protocol can say.',
  ),
  datagrams_burst: withReason(
    withFallback(
      ours(u32().min(1).optional(), 'Datagrams at once after a pause.', 'datagrams'),
      '`datagrams_per_second`',
    ),
    'As for flows.',
  ),
  sketch_columns: withReason(
    ours(
      z
        .int()
        .min(COLUMNS_MIN)
        .max(COLUMNS_MAX)
        .refine((count) => count < COLUMNS_MIN || count > COLUMNS_MAX || isPowerOfTwo(count), {
          error: 'not a power of two',
          params: { fix: `write a power of two, such as ${NO_SOURCE_RATES.columns}` },
        })
        .default(NO_SOURCE_RATES.columns),
      'Width of the sketch that counts clients without a flow, a power of two; 64 bytes each, for each of the two rates.',
    ),
    'Half of columns × rate is the flood under invented addresses that leaves good clients alone: at a rate of ' +
      '20, 160,000 datagrams a second, for 1 MiB.',
  ),
  allow: ours(
    addressBlocks().optional(),
    'Blocks of addresses (CIDR) whose clients are let in, and nobody else; others are dropped (`denied`).',
  ),
  deny: withReason(
    ours(
      addressBlocks().optional(),
      'Blocks whose clients are kept out. The longest prefix decides between the lists; in a tie, `deny` does.',
    ),
    'An empty list keeps nobody out.',
  ),
  amplification_factor: withReason(
    withFallback(
      ours(
        u32().optional(),
        'Reply bytes for each byte of a client’s first datagram, until it sends a second; ' +
          'more are dropped (`amplification`). 0 = unlimited.',
      ),
      `unlimited; \`${AMPLIFICATION_DEFAULTS.factor}\` beside \`amplification_floor\``,
    ),
    'A client of one datagram, as in DNS or NTP, gets answers of any size. Three is what QUIC grants (RFC 9000 §8.1).',
  ),
  amplification_floor: withReason(
    withFallback(
      ours(
        u32().optional(),
        'Reply bytes that any first datagram may have, however short it was.',
        'bytes',
      ),
      `\`${AMPLIFICATION_DEFAULTS.floor}\` beside \`amplification_factor\``,
    ),
    'The largest UDP answer that resolvers ask for since DNS Flag Day 2020.',
  ),
};

const LIMITS_TABLE: z.ZodType<LimitsTable> = z
  .strictObject(limitsShape)
  .refine((limits) => limits.new_flows_burst === undefined || limits.new_flows_per_second !== 0, {
    when: always,
    path: ['new_flows_burst'],
    error: 'a burst without a rate limits nothing',
    params: { fix: 'write new_flows_per_second, or remove it' },
  })
  .refine((limits) => limits.datagrams_burst === undefined || limits.datagrams_per_second !== 0, {
    when: always,
    path: ['datagrams_burst'],
    error: 'a burst without a rate limits nothing',
    params: { fix: 'write datagrams_per_second, or remove it' },
  })
  .refine(({ allow, deny }) => lengthOf(allow) + lengthOf(deny) <= ACCESS_RULES_MAX, {
    when: always,
    error: `more than ${ACCESS_RULES_MAX} blocks in allow and deny together`,
    params: { fix: 'use shorter prefixes' },
  });

const udpShape = {
  preset: withReason(
    ours(
      z.enum(PRESET_NAMES).optional(),
      'What is known of a protocol, instead of ten keys. Keys that are written win.',
    ),
    'A Sōzu file has none. The port says too little: DNS runs on many ports, and anything on 443.',
  ),
  affinity_key: sozu(
    z.enum(['SOURCE_IP', 'SOURCE_IP_PORT']).default('SOURCE_IP'),
    'What chooses the backend of a new flow under HRW and MAGLEV. A flow is always one client port.',
  ),
  responses: presettable(
    sozu(u32().optional(), 'Close a flow after this many replies. 0 = never.', 'datagrams'),
    '`0`',
    'Nothing says of an unknown protocol how many replies a flow has.',
  ),
  responses_per_request: presettable(
    ours(
      z.boolean().optional(),
      '`responses` are those of each client datagram, so the A and the AAAA query of one socket both get theirs.',
    ),
    '`false`',
    'A Sōzu file means what it means there: replies of the whole flow.',
  ),
  requests: sozu(
    u32().default(0),
    'Close a flow after this many client datagrams. 0 = never.',
    'datagrams',
  ),
  requests_linger: presettable(
    ours(
      z.boolean().optional(),
      'At the cap on `requests` a flow takes no more, but returns the replies that are still to come.',
    ),
    '`false`',
    'As in Sōzu, where the reply to the last request is lost.',
  ),
  late_reply_grace_ms: withReason(
    ours(
      u32().default(0),
      'A flow that has all its replies still returns those that come this much later. It then ends as it would have.',
      'ms',
    ),
    'A complete flow gives its socket back at once. Milliseconds, because answers lie milliseconds apart and ' +
      'every number of this file is a whole one.',
  ),
  forward_empty_datagrams: presettable(
    ours(
      z.boolean().optional(),
      'Forward an empty client datagram of a live flow. One without a flow is Invalid all the same.',
    ),
    '`false`',
    'As in Sōzu, where each is Invalid.',
  ),
  send_proxy_protocol: sozu(
    z.boolean().default(false),
    'Put a PROXY protocol v2 header with the true client address before the payload.',
  ),
  proxy_protocol_every_datagram: presettable(
    sozu(
      z.boolean().optional(),
      'The header on every datagram, as the PROXY protocol text and every DNS server want it; ' +
        '`false`: on the first of a flow only.',
    ),
    '`false`',
    'As in Sōzu; `check` warns of it.',
  ),
  reject_client_header: withReason(
    ours(
      z.boolean().default(true),
      'Where only the first datagram carries a header: refuse a later one of the client that begins like a header.',
    ),
    'A backend that looks for headers would believe any address a client writes.',
  ),
  allow_backend_as_client: presettable(
    ours(
      z.boolean().optional(),
      'Serve a client whose address is a backend’s. Otherwise its datagrams are Invalid: they could circle.',
    ),
    '`false`',
    'Two machines that answer each other never stop; few protocols ask from the port they serve.',
  ),
  subnet_prefix_ipv4: ours(
    z.int().min(0).max(32).default(LIMITS.subnetPrefixIpv4),
    'Length of the subnet that `max_connections_per_subnet` counts, IPv4.',
    'bits',
  ),
  subnet_prefix_ipv6: withReason(
    ours(
      z.int().min(0).max(128).default(LIMITS.subnetPrefixIpv6),
      'The same for IPv6, and what the rates of `limits` take for one client.',
      'bits',
    ),
    'One customer has a /64 at least, and could take a new address for each datagram.',
  ),
  exchange: presettable(
    ours(
      z.enum(['request-response', 'one-way']).optional(),
      'Whether a backend answers each request. Only where it says `"request-response"` do missing answers count.',
    ),
    'not known',
    'Silence is evidence only for those who know the protocol.',
  ),
  passive_health: withReason(
    ours(
      z.boolean().default(true),
      'Take a backend out of rotation for a while when its traffic speaks against it: refusals, or missing answers.',
    ),
    'Refusals on several flows are the kernel’s word; at worst a backend rests that another can stand in for.',
  ),
  on_backend_down: presettable(
    ours(
      onBackendLoss().optional(),
      'Live flows of a backend that is down (by probes or by its traffic): `pin` keeps them there, `rebind` chooses ' +
        'anew at the next client datagram, `close` ends them at once.',
    ),
    '`"pin"`',
    'As in Sōzu. A verdict can be wrong, and a protocol with state seldom survives the move.',
  ),
  on_backend_removed: withReason(
    ours(
      onBackendLoss().default('rebind'),
      'The same for a backend that the operator removed, disabled, or has drained.',
    ),
    'What was taken away on purpose does not come back, and a sender that never pauses would send there for ever.',
  ),
  upstream_source: withReason(
    ours(
      ownAddresses().default([]),
      'Addresses of this machine that datagrams to backends leave from, without ports, tried in turn.',
    ),
    'The kernel’s choice follows the route. A host has some 28,000 ports for each address, and one flow takes one.',
  ),
  health: sozu(
    HEALTH.optional(),
    'Health checks. Without the table nobody probes, and every backend counts as up.',
  ),
  limits: ours(
    LIMITS_TABLE.optional(),
    'Limits on clients. Without the table there are none but `max_flows` and those per address and subnet.',
  ),
};

export const UDP: z.ZodType<UdpTable> = z.strictObject(udpShape);

/** As the manual has them. */
export const FLOW_KEYS: readonly DocumentedTable[] = [
  { header: '[clusters.<id>.udp]', shape: udpShape },
  { header: '[clusters.<id>.udp.limits]', shape: limitsShape },
];

function onBackendLoss(): z.ZodType<OnBackendLoss, OnBackendLoss> {
  return z.enum(['pin', 'rebind', 'close']);
}

/** Of a key whose default gives way to that of the cluster's preset. */
function presettable<S extends z.ZodType>(schema: S, fallback: string, reason: string): S {
  return withReason(withFallback(schema, `${fallback}, or the preset’s`), reason);
}

/** What several keys mean together is judged even where one of them is broken, so that all problems come at once. */
function always(): boolean {
  return true;
}

function isPowerOfTwo(count: number): boolean {
  return (count & (count - 1)) === 0;
}

function lengthOf(list: readonly unknown[] | undefined): number {
  return list?.length ?? 0;
}
