/**
 * A configuration between grammar and meaning: the tables that concern UDP, checked one by one and joined by address
 * (spec §7.2), each with the path it came from. Tables of other protocols are named in one notice and left out.
 */
import { formatAddress, parseAddress, unmap } from '../../core/address.ts';
import { LISTENERS_MAX } from '../../core/brand.ts';
import { describe, reportIssues } from './issues.ts';
import { formatPath, type Path, type Report } from './problem.ts';
import { FOREIGN_CLUSTER_KEYS, FOREIGN_LISTENER_KEYS } from './sozu-keys.ts';
import { CLUSTER, LISTENER, type ClusterTable, type ListenerTable } from './schema.ts';
import { UDP } from './schema-flows.ts';
import { withoutFaults } from './without-faults.ts';

export interface ListenerDraft {
  readonly path: Path;
  readonly table: ListenerTable;
  /** Id of the first cluster that claims it; the cluster itself may be broken and missing from the draft. */
  cluster: string | undefined;
}

export interface ClusterDraft {
  readonly id: string;
  readonly path: Path;
  readonly table: ClusterTable;
}

export interface Draft {
  readonly listeners: readonly ListenerDraft[];
  /** Those that a UDP listener leads to. */
  readonly clusters: readonly ClusterDraft[];
}

/** A TOML table; keys are own properties of an object without prototype. */
export type Table = Readonly<Record<string, unknown>>;

/** Reads what concerns UDP and reports what is wrong with it. What is broken is left out of the draft. */
export function readDraft(document: Table, report: Report): Draft {
  const sockets = readListeners(document['listeners'], report);
  if (sockets.udp.size > LISTENERS_MAX) {
    const problem = `${sockets.udp.size} UDP listeners are more than the ${LISTENERS_MAX} of a process`;
    report.error(['listeners'], problem, 'spread them over several processes');
  }
  const clusters = readClusters(document['clusters'], sockets, report);
  return { listeners: [...sockets.udp.values()].filter((one) => one !== undefined), clusters };
}

/** Whether a parsed value is a table. */
export function isTable(value: unknown): value is Table {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Declared listeners by address. */
interface Sockets {
  /** Undefined where the table is broken: clusters still lead there, so that one fault is one problem. */
  readonly udp: Map<string, ListenerDraft | undefined>;
  /** Protocol of every other listener. */
  readonly others: Map<string, Set<string>>;
}

function readListeners(raw: unknown, report: Report): Sockets {
  const sockets: Sockets = { udp: new Map(), others: new Map() };
  const skipped: string[] = [];
  const tables = arrayAt(raw, ['listeners'], report);
  for (const [index, table] of tables.entries()) {
    const path = ['listeners', index];
    if (!isTable(table)) {
      report.error(path, `expected a table, found ${describe(table)}`, 'write [[listeners]]');
      continue;
    }
    const protocol = table['protocol'];
    if (protocol === 'udp') {
      readListener(table, path, sockets, report);
    } else if (protocol === 'http' || protocol === 'https' || protocol === 'tcp') {
      const address = addressKey(table['address']) ?? '(no address)';
      sockets.others.set(address, new Set(sockets.others.get(address)).add(protocol));
      skipped.push(`${protocol} ${address}`);
    } else {
      const found = protocol === undefined ? 'missing: ' : '';
      const expected = 'expected "udp" (or http, https, tcp, which are skipped)';
      const stands = protocol === undefined ? '' : `, found ${describe(protocol)}`;
      report.error([...path, 'protocol'], found + expected + stands, 'write protocol = "udp"');
    }
  }
  if (skipped.length > 0) report.notice(['listeners'], `skipped, not UDP: ${skipped.join(', ')}`);
  if (skipped.length === tables.length) {
    report.error(['listeners'], 'no UDP listener', 'add [[listeners]] with protocol = "udp"');
  }
  return sockets;
}

function readListener(raw: Table, path: Path, sockets: Sockets, report: Report): void {
  const result = LISTENER.safeParse(raw, { reportInput: true });
  if (!result.success) reportIssues(report, path, result.error.issues);
  const rest = result.success ? result.data : withoutFaults(LISTENER, raw, result.error.issues);
  const key = addressKey(raw['address']) ?? `(${path.join(' ')})`;
  if (sockets.udp.has(key)) {
    const problem = `a UDP listener on ${key} stands above already`;
    report.error([...path, 'address'], problem, 'remove one of the two');
    return;
  }
  for (const foreign of FOREIGN_LISTENER_KEYS) {
    if (raw[foreign] === undefined || raw[foreign] === false) continue;
    report.warning([...path, foreign], 'no effect on a UDP listener', 'remove it');
  }
  const draft = rest && { path, table: rest, cluster: undefined };
  sockets.udp.set(key, draft);
  if (raw['expect_proxy'] === true && raw['public_address'] !== undefined) {
    const problem = 'expect_proxy and public_address exclude each other';
    report.error([...path, 'expect_proxy'], problem, 'remove expect_proxy: UDP does not use it');
  }
}

function readClusters(raw: unknown, sockets: Sockets, report: Report): readonly ClusterDraft[] {
  if (raw !== undefined && !isTable(raw)) {
    const fix = 'write [clusters.<id>], with a name of its own for each cluster';
    report.error(['clusters'], `expected a table, found ${describe(raw)}`, fix);
    return [];
  }
  const entries = Object.entries(raw ?? {});
  const preferred = addressesOfUdpBlocks(entries);
  const drafts: ClusterDraft[] = [];
  const skipped: string[] = [];
  for (const [id, table] of entries) {
    const path = ['clusters', id];
    if (!isTable(table)) {
      const fix = `write [${formatPath(path)}]`;
      report.error(path, `expected a table, found ${describe(table)}`, fix);
    } else if (id === '__proto__' || id === 'constructor') {
      report.error(path, 'unknown key: a cluster cannot have this name', 'rename the cluster');
    } else if (leadsToUdp(table, sockets, preferred)) {
      const draft = readCluster(id, table, sockets, report);
      if (draft !== undefined) drafts.push(draft);
    } else if (table['udp'] !== undefined) {
      reportLostUdpBlock(table, path, report);
    } else {
      skipped.push(id);
    }
  }
  if (skipped.length > 0) report.notice(['clusters'], `skipped, not UDP: ${skipped.join(', ')}`);
  return drafts;
}

/** Addresses that clusters with a `udp` block claim: there, a cluster without one is the TCP listener's. */
function addressesOfUdpBlocks(clusters: readonly [string, unknown][]): ReadonlySet<string> {
  const claims = clusters.flatMap(([, table]) =>
    isTable(table) && table['udp'] !== undefined ? frontendKeys(table) : [],
  );
  return new Set(claims.filter((key) => key !== undefined));
}

/** Whether a frontend of the cluster names a UDP listener, and means that one (an address may have a twin). */
function leadsToUdp(table: Table, sockets: Sockets, preferred: ReadonlySet<string>): boolean {
  return frontendKeys(table).some((key) => {
    if (key === undefined || !sockets.udp.has(key)) return false;
    const twins = sockets.others.get(key);
    if (twins === undefined) return true;
    if (table['protocol'] === 'http') return !twins.has('http') && !twins.has('https');
    return table['udp'] !== undefined || !twins.has('tcp') || !preferred.has(key);
  });
}

function readCluster(
  id: string,
  raw: Table,
  sockets: Sockets,
  report: Report,
): ClusterDraft | undefined {
  const path = ['clusters', id];
  if (id === '') report.error(path, 'a cluster needs a name', 'write [clusters.<name>]');
  const result = CLUSTER.safeParse(raw, { reportInput: true });
  if (!result.success) reportIssues(report, path, result.error.issues);
  const rest = result.success ? result.data : withoutFaults(CLUSTER, raw, result.error.issues);
  for (const foreign of FOREIGN_CLUSTER_KEYS) {
    if (raw[foreign] === undefined || raw[foreign] === false) continue;
    report.notice([...path, foreign], 'no effect on UDP flows');
  }
  const draft = rest && { id, path, table: rest };
  const seen = new Set<string>();
  for (const [index, key] of frontendKeys(raw).entries()) {
    if (key === undefined) continue;
    const at = [...path, 'frontends', index, 'address'];
    if (seen.has(key)) report.warning(at, `${key} stands twice in this cluster`, 'remove one');
    else if (!sockets.udp.has(key)) reportOtherFrontend(at, key, sockets, report);
    else claim(sockets.udp.get(key), id, at, report);
    seen.add(key);
  }
  return draft;
}

/** Sōzu lets the last claim win in an order that is hash-random; whoever loses is never told. */
function claim(
  listener: ListenerDraft | undefined,
  cluster: string,
  path: Path,
  report: Report,
): void {
  if (listener === undefined) return;
  if (listener.cluster === undefined) {
    listener.cluster = cluster;
    return;
  }
  const problem = `the UDP listener ${formatAddress(unmap(listener.table.address))} leads to cluster`;
  const fix = 'a UDP listener leads to one cluster: remove the frontend from one of the two';
  report.error(path, `${problem} "${listener.cluster}" already`, fix);
}

function reportOtherFrontend(path: Path, key: string, sockets: Sockets, report: Report): void {
  const protocols = sockets.others.get(key);
  if (protocols === undefined) {
    report.notice(path, `skipped: no listener on ${key} is declared; Sōzu opens a TCP one there`);
  } else if (protocols.has('tcp')) {
    report.notice(path, `skipped: ${key} is a TCP listener`);
  } else {
    const fix = 'name a UDP listener, or make it an HTTP cluster';
    report.error(path, `${key} is an HTTP listener, and this cluster is not HTTP`, fix);
  }
}

function reportLostUdpBlock(raw: Table, path: Path, report: Report): void {
  const result = UDP.safeParse(raw['udp'], { reportInput: true });
  if (!result.success) reportIssues(report, [...path, 'udp'], result.error.issues);
  const problem = 'no declared UDP listener leads to this cluster, so its udp block has no effect';
  const fix = 'declare [[listeners]] with protocol = "udp" on the address of one of its frontends';
  report.error([...path, 'udp'], problem, fix);
}

/** The addresses that a cluster's frontends name, as keys; undefined where there is none to read. */
function frontendKeys(cluster: Table): readonly (string | undefined)[] {
  const frontends = cluster['frontends'];
  if (!Array.isArray(frontends)) return [];
  // An address without its table is an error, told where the cluster is read: it must not make the cluster another's.
  return frontends.map((frontend: unknown) =>
    addressKey(isTable(frontend) ? frontend['address'] : frontend),
  );
}

/** One spelling for one address; text that is no address stands for itself, so that equal typos still meet. */
function addressKey(raw: unknown): string | undefined {
  if (typeof raw !== 'string') return undefined;
  const address = parseAddress(raw);
  return address === undefined ? raw : formatAddress(unmap(address));
}

function arrayAt(raw: unknown, path: Path, report: Report): readonly unknown[] {
  if (raw === undefined) return [];
  if (Array.isArray(raw)) return raw;
  report.error(path, `expected an array of tables, found ${describe(raw)}`, 'write [[listeners]]');
  return [];
}
