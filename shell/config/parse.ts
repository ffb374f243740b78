/**
 * The only way from a configuration file to the core's Config. Every problem is reported at once, with its path and, where
 * TOML gives it, its line; past this nothing checks again. Pure: the machine comes in as an Environment.
 */
import { parse as parseToml, TomlError } from 'smol-toml';
import { unmap } from '../../core/address.ts';
import type { Config } from '../../core/config.ts';
import { seconds } from '../../core/time.ts';
import { readAccessLog, type AccessLogRead } from './access-log.ts';
import { clusterSettings } from './cluster-settings.ts';
import { isTable, readDraft, type Draft, type Table } from './draft.ts';
import type { Environment } from './environment.ts';
import { reportIssues, suggestKey } from './issues.ts';
import { listenerConfig } from './listener-config.ts';
import { locateKeys } from './locate.ts';
import { hasIpv4Twin, reportLoops } from './loops.ts';
import { Report, type Problem } from './problem.ts';
import { GLOBAL, GLOBAL_KEYS, type GlobalTable } from './schema.ts';
import { pathOf } from './schema-access-log.ts';
import { readAdmin, readMetrics, type AdminSettings, type StatsdSettings } from './watchers.ts';
import { FOREIGN_GLOBAL_KEYS } from './sozu-keys.ts';
import { reportWarnings } from './warnings.ts';
import { workersOf } from './workers.ts';

/** Settings of the shell alone; the core never sees them. */
export interface ShellSettings {
  readonly logLevel: GlobalTable['log_level'];
  readonly io: GlobalTable['io'];
  readonly workers: number | 'auto';
  readonly steer: GlobalTable['steer'];
  /** As written. Undefined: the default; empty: none. */
  readonly commandSocket: string | undefined;
  /** The path of a file, undefined for standard output. */
  readonly logTarget: string | undefined;
  /** `stdout`, `stderr`, or the path of a file; undefined: there is no access log. */
  readonly accessLogTarget: string | undefined;
  readonly watchConfig: boolean;
  /** Undefined: nothing is recorded. */
  readonly recorder:
    | {
        readonly segmentBytes: number;
        /** Undefined: the system's folder for temporary files. */
        readonly folder: string | undefined;
      }
    | undefined;
  /** The file as it was written. */
  readonly text: string;
  /** What listeners that are added later are bounded by. */
  readonly maxConnections: number;
  readonly bufferSize: number;
  readonly admin: AdminSettings | undefined;
  readonly statsd: StatsdSettings | undefined;
}

export interface Parsed {
  /** Undefined when there is an error among the problems. */
  readonly config: Config | undefined;
  readonly settings: ShellSettings | undefined;
  readonly problems: readonly Problem[];
}

/** Reads a TOML file's text or bytes. Never throws, whatever the input. */
export function parseConfig(input: string | Uint8Array, environment: Environment = {}): Parsed {
  const text = typeof input === 'string' ? input : decode(input);
  if (text === undefined || text.includes('\0')) {
    return refuse({ problem: 'not a text file', fix: 'a configuration is TOML in UTF-8' });
  }
  if (text.trim() === '') {
    return refuse({ problem: 'the file is empty', fix: 'declare a UDP listener and a cluster' });
  }
  const document = readToml(text);
  if (!document.ok) return refuse(document);
  const report = new Report(locateKeys(text));
  const global = readGlobals(document.table, report);
  const draft = readDraft(document.table, report);
  const accessLog = readAccessLog(document.table['access_log'], report);
  const admin = readAdmin(document.table['admin'], report);
  const statsd = readMetrics(document.table['metrics'], report);
  reportLoops(draft, environment.localAddresses ?? [], report);
  reportWarnings(draft, global, environment, report);
  return {
    config: report.failed ? undefined : toConfig({ draft, global, accessLog }, environment),
    settings: report.failed
      ? undefined
      : { ...shellSettings(global, text), accessLogTarget: accessLog?.target, admin, statsd },
    problems: report.problems,
  };
}

function shellSettings(
  global: GlobalTable,
  text: string,
): Omit<ShellSettings, 'accessLogTarget' | 'admin' | 'statsd'> {
  const { recorder_segment_size: segmentBytes, recorder_folder: folder } = global;
  return {
    recorder: global.recorder ? { segmentBytes, folder } : undefined,
    text,
    logLevel: global.log_level,
    io: global.io,
    workers: workersOf(global),
    steer: global.steer,
    commandSocket: global.command_socket,
    logTarget: logFileOf(global),
    watchConfig: global.watch_config,
    maxConnections: global.max_connections,
    bufferSize: global.buffer_size,
  };
}

/** Sōzu has targets that this version has not: they are told, and the log goes to standard output. */
function logFileOf({ log_target: target }: GlobalTable): string | undefined {
  return pathOf(target);
}

/** The answer to a file that cannot be read as a configuration at all. */
export function refuse(problem: Pick<Problem, 'problem' | 'fix' | 'line' | 'column'>): Parsed {
  const { line, column, fix } = problem;
  return {
    config: undefined,
    settings: undefined,
    problems: [{ severity: 'error', path: '(file)', line, column, problem: problem.problem, fix }],
  };
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

type Document =
  | { readonly ok: true; readonly table: Table }
  | ({ readonly ok: false } & Pick<Problem, 'problem' | 'line' | 'column'>);

function readToml(text: string): Document {
  try {
    const table = withoutDates(parseToml(text), 0);
    return { ok: true, table: isTable(table) ? table : {} };
  } catch (error) {
    if (!(error instanceof TomlError)) return { ok: false, problem: String(error) };
    const [first = ''] = error.message.split('\n');
    const what = first.replace('Invalid TOML document: ', '');
    return { ok: false, problem: `TOML: ${what}`, line: error.line, column: error.column };
  }
}

/** Our deepest table lies five levels down; deeper ones are unknown keys whatever they hold. */
const DEPTH_MAX = 16;

/** No key of ours is a date, and a date object must not pass for a table. */
function withoutDates(value: unknown, depth: number): unknown {
  if (value instanceof Date) return '(a date)';
  if (depth > DEPTH_MAX) return '(too deep)';
  if (Array.isArray(value)) return value.map((item: unknown) => withoutDates(item, depth + 1));
  if (!isTable(value)) return value;
  const table: Record<string, unknown> = Object.create(null);
  for (const [key, item] of Object.entries(value)) table[key] = withoutDates(item, depth + 1);
  return table;
}

function readGlobals(document: Table, report: Report): GlobalTable {
  reportForeignGlobals(document, report);
  const result = GLOBAL.safeParse(document, { reportInput: true });
  if (result.success) {
    reportLogTarget(result.data, report);
    return result.data;
  }
  reportIssues(report, [], result.error.issues);
  return GLOBAL.parse({});
}

function reportLogTarget(global: GlobalTable, report: Report): void {
  if (global.log_target === 'stdout' || logFileOf(global) !== undefined) return;
  const fix = 'write "stdout", or "file://" and an absolute path';
  report.warning(['log_target'], 'no such target here: the log goes to standard output', fix);
}

const TABLES_READ: ReadonlySet<string> = new Set([
  'listeners',
  'clusters',
  'access_log',
  'admin',
  'metrics',
]);

function reportForeignGlobals(document: Table, report: Report): void {
  const without: string[] = [];
  for (const key of Object.keys(document)) {
    if (TABLES_READ.has(key) || GLOBAL_KEYS.includes(key)) continue;
    if (FOREIGN_GLOBAL_KEYS.includes(key)) without.push(key);
    else report.warning([key], 'unknown top-level key: ignored', suggestKey(key));
  }
  const [first] = without;
  if (first !== undefined) report.notice([first], `no effect here: ${without.join(', ')}`);
  if ((document['max_connections_per_ip'] ?? 0) !== 0) {
    const problem = 'the global limit is not applied to UDP flows';
    report.warning(['max_connections_per_ip'], problem, 'write it in the cluster');
  }
  if (document['automatic_state_save'] === true && document['saved_state'] === undefined) {
    const problem = 'Sōzu refuses this without saved_state';
    report.warning(['automatic_state_save'], problem, 'write saved_state, or remove it');
  }
}

interface Read {
  readonly draft: Draft;
  readonly global: GlobalTable;
  readonly accessLog: AccessLogRead | undefined;
}

function toConfig({ draft, global, accessLog }: Read, environment: Environment): Config {
  const bounds = {
    descriptorLimit: environment.descriptorLimit,
    maxConnections: global.max_connections,
    bufferSize: global.buffer_size,
  };
  return {
    listeners: draft.listeners.map(({ table, cluster }) => {
      const ipv6Only = hasIpv4Twin(unmap(table.address), draft.listeners);
      return listenerConfig(table, bounds, { ipv6Only, cluster });
    }),
    clusters: draft.clusters.map(clusterSettings),
    grace: seconds(global.grace),
    accessLog: accessLog?.settings,
  };
}
