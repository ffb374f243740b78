/** Tables for those who watch, both off unless written: `[admin]`, the HTTP server, and `[metrics]`, the push to a statsd. */
import * as z from 'zod';
import type { Address } from '../../core/address.ts';
import { ipPort } from './ip-port.ts';
import { fileName, ours, sozu, type DocumentedTable } from './key-notes.ts';

const adminShape = {
  address: ours(
    ipPort('any port'),
    'Where `/metrics`, `/live`, `/ready`, `/status`, `/flows` and `/events` are served. Port 0 lets the kernel choose.',
  ),
  token_file: ours(
    fileName().optional(),
    'A file whose first line is a token of 16 characters or more. Then all paths but `/live` and `/ready` need ' +
      '`Authorization: Bearer`. Required unless the address is loopback.',
  ),
  allowed_hosts: ours(
    z.array(hostName()).default([]),
    'Names that clients may call this server by, besides its IP addresses and `localhost`.',
  ),
};

const metricsShape = {
  address: sozu(ipPort(), 'A statsd, told over UDP once a second what changed.'),
  prefix: sozu(prefix().default('sozu'), 'What every name begins with.'),
  tagged_metrics: sozu(
    z.boolean().default(false),
    'Write clusters as a tag, `name,cluster_id=dns`, and not into the name.',
  ),
  detail: sozu(
    z.enum(['process', 'frontend', 'cluster', 'backend']).default('cluster'),
    'The first two leave out what is counted by cluster. Nothing is pushed for each backend.',
  ),
};

interface AdminTable {
  readonly address: Address;
  readonly token_file?: string | undefined;
  readonly allowed_hosts: readonly string[];
}

interface MetricsTable {
  readonly address: Address;
  readonly prefix: string;
  readonly tagged_metrics: boolean;
  readonly detail: 'process' | 'frontend' | 'cluster' | 'backend';
}

export const ADMIN: z.ZodType<AdminTable> = z.strictObject(adminShape);
export const METRICS: z.ZodType<MetricsTable> = z.strictObject(metricsShape);

export const WATCHER_TABLES: readonly DocumentedTable[] = [
  { header: '[admin]', shape: adminShape },
  { header: '[metrics]', shape: metricsShape },
];

/** Compared with what clients say: anything but a name alone would never match. */
function hostName(): z.ZodString {
  return z
    .string()
    .min(1)
    .refine((text) => /^[\w.-]*$/.test(text), {
      error: 'not a name alone',
      params: { fix: 'write a host name, without a port and without *' },
    });
}

/** What a statsd takes in a name, and as long as leaves room for the rest of a line in a packet. */
function prefix(): z.ZodString {
  return z
    .string()
    .min(1)
    .refine((text) => /^[\w.-]{0,200}$/.test(text), {
      error: 'no beginning of a name of metrics',
      params: { fix: 'write letters, digits, dots, "-" and "_", 200 at most' },
    });
}
