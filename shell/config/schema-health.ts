/** The grammar of `[clusters.<id>.udp.health]`; see schema.ts for the others. */
import * as z from 'zod';
import { DATAGRAM_BYTES_MAX } from '../../core/contract.ts';
import { LOCAL_HEADER } from '../../core/health/probe-contract.ts';
import { ours, sozu, u32, withFallback, type DocumentedTable } from './key-notes.ts';

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

export const HEALTH: z.ZodType<HealthTable> = z
  .strictObject(healthShape)
  .refine((health) => health.mode !== 'UDP_PROBE' || (health.udp_probe_payload ?? '') !== '', {
    path: ['udp_probe_payload'],
    error: 'missing: UDP_PROBE needs a payload to send',
    params: { fix: 'write udp_probe_payload, or mode = "TCP_PROBE"' },
  });

export const HEALTH_KEYS: DocumentedTable = {
  header: '[clusters.<id>.udp.health]',
  shape: healthShape,
};

/** As the probe sends it. */
export function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
