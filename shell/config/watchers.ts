/** What the tables `[admin]` and `[metrics]` mean: settings of the shell alone, read once, at the start. */
import { formatAddress, isLoopback, unmap, type Address } from '../../core/address.ts';
import { reportIssues } from './issues.ts';
import type { Report } from './problem.ts';
import { ADMIN, METRICS } from './schema-admin.ts';

/** The HTTP server for whoever watches. */
export interface AdminSettings {
  readonly address: Address;
  /** Whose first line is the token. */
  readonly tokenFile: string | undefined;
  /** Names, in lower case, that clients may call it by. */
  readonly hosts: readonly string[];
}

/** Where metrics are pushed to. */
export interface StatsdSettings {
  readonly address: Address;
  readonly prefix: string;
  readonly tagged: boolean;
  /** Whether each cluster's figures are sent beside those of the process. */
  readonly clusters: boolean;
}

/** Undefined when there is no such table, or a broken one. */
export function readAdmin(raw: unknown, report: Report): AdminSettings | undefined {
  if (raw === undefined) return undefined;
  const result = ADMIN.safeParse(raw, { reportInput: true });
  if (!result.success) {
    reportIssues(report, ['admin'], result.error.issues);
    return undefined;
  }
  const { address, token_file: tokenFile, allowed_hosts: hosts } = result.data;
  if (tokenFile === undefined && !isLoopback(unmap(address))) {
    const problem = `${formatAddress(address)} is not loopback: without a token, whoever reaches it reads who your clients are`;
    report.error(['admin', 'address'], problem, 'write token_file, or an address on 127.0.0.1');
  }
  return { address: unmap(address), tokenFile, hosts: hosts.map((host) => host.toLowerCase()) };
}

/** Undefined when there is no such table, or a broken one. */
export function readMetrics(raw: unknown, report: Report): StatsdSettings | undefined {
  if (raw === undefined) return undefined;
  const result = METRICS.safeParse(raw, { reportInput: true });
  if (!result.success) {
    reportIssues(report, ['metrics'], result.error.issues);
    return undefined;
  }
  const { address, prefix, tagged_metrics: tagged, detail } = result.data;
  const clusters = detail === 'cluster' || detail === 'backend';
  return { address: unmap(address), prefix, tagged, clusters };
}
