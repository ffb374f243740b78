/**
 * Backends that are listeners of our own. A datagram sent there comes back as a client's, and where the way leads round,
 * one datagram circles until the machine is busy with nothing else. The core drops what it recognises (spec decisions,
 * "loops"); this finds the mistake before the start.
 */
import {
  formatAddress,
  ipv4,
  ipv6,
  isLoopback,
  isUnspecified,
  parseIp,
  sameAddress,
  sameIp,
  unmap,
  type Address,
} from '../../core/address.ts';
import type { ClusterDraft, Draft, ListenerDraft } from './draft.ts';
import type { Path, Report } from './problem.ts';

/** Reports every backend that is one of our listeners, with the way it leads. `local` are this machine's addresses. */
export function reportLoops(draft: Draft, local: readonly string[], report: Report): void {
  const ours = local.flatMap((text) => parseIp(text, 0) ?? []).map((address) => unmap(address));
  const reached = new Map<Address, readonly ListenerDraft[]>();
  const reaches = (backend: Address): readonly ListenerDraft[] => {
    const known = reached.get(backend);
    if (known !== undefined) return known;
    const found = draft.listeners.filter((one) => covers(one, backend, draft.listeners, ours));
    reached.set(backend, found);
    return found;
  };
  const clusters = new Map(draft.clusters.map((cluster) => [cluster.id, cluster]));
  for (const start of draft.listeners) {
    const cluster = clusters.get(start.cluster ?? '');
    if (cluster === undefined || isReported(cluster, start, draft.listeners)) continue;
    for (const [index, backend] of cluster.table.backends.entries()) {
      const [first] = reaches(backend.address);
      if (first === undefined) continue;
      const way = wayBack(start, first, clusters, reaches);
      reportLoop([...cluster.path, 'backends', index, 'address'], first, way, report);
    }
  }
}

/** Whether a socket bound where `listener` is receives what is sent to `target`. */
function covers(
  listener: ListenerDraft,
  target: Address,
  all: readonly ListenerDraft[],
  ours: readonly Address[],
): boolean {
  const bound = unmap(listener.table.address);
  const sent = asDestination(unmap(target));
  if (bound.port !== sent.port) return false;
  if (!isUnspecified(bound)) return sameAddress(asDestination(bound), sent);
  const ip = { ...sent, scope: 0 };
  if (!isLoopback(ip) && !ours.some((address) => sameIp(address, ip))) return false;
  return bound.family === sent.family || (bound.family === 6 && !hasIpv4Twin(bound, all));
}

/** Whether `0.0.0.0` with the same port is declared too, so that `::` is bound without IPv4. */
export function hasIpv4Twin(bound: Address, all: readonly ListenerDraft[]): boolean {
  if (bound.family !== 6 || !isUnspecified(bound)) return false;
  return all.some(({ table }) => sameAddress(unmap(table.address), ipv4(0, bound.port)));
}

/** As the kernel takes it: the unspecified address for loopback, and a zone for nothing unless the address needs one. */
function asDestination(address: Address): Address {
  if (!isUnspecified(address)) return isLinkLocal(address) ? address : { ...address, scope: 0 };
  if (address.family === 4) return ipv4(0x7f000001, address.port);
  return ipv6([0, 0, 0, 1], address.port);
}

/** fe80::/10 (RFC 4291 §2.5.6). */
function isLinkLocal(address: Address): boolean {
  return address.family === 6 && (address.a & 0xffc00000) === (0xfe800000 | 0);
}

/** A cluster behind several listeners is reported once, for the first of them. */
function isReported(
  cluster: ClusterDraft,
  listener: ListenerDraft,
  all: readonly ListenerDraft[],
): boolean {
  return all.find((one) => one.cluster === cluster.id) !== listener;
}

/** The shortest way over listeners from `first` back to the cluster of `start`, or undefined when it ends elsewhere. */
function wayBack(
  start: ListenerDraft,
  first: ListenerDraft,
  clusters: ReadonlyMap<string, ClusterDraft>,
  reaches: (backend: Address) => readonly ListenerDraft[],
): readonly ListenerDraft[] | undefined {
  const before = new Map<ListenerDraft, ListenerDraft | undefined>([[first, undefined]]);
  for (const listener of before.keys()) {
    if (listener.cluster === start.cluster) return unwind(listener, before);
    const backends = clusters.get(listener.cluster ?? '')?.table.backends ?? [];
    for (const next of backends.flatMap(({ address }) => reaches(address))) {
      if (!before.has(next)) before.set(next, listener);
    }
  }
  return undefined;
}

function unwind(
  last: ListenerDraft,
  before: ReadonlyMap<ListenerDraft, ListenerDraft | undefined>,
): readonly ListenerDraft[] {
  const way: ListenerDraft[] = [];
  for (let at: ListenerDraft | undefined = last; at !== undefined; at = before.get(at))
    way.unshift(at);
  return way;
}

/** Listeners of a way that are named; a long one is no clearer for its middle. */
const NAMED_MAX = 8;

function reportLoop(
  path: Path,
  first: ListenerDraft,
  way: readonly ListenerDraft[] | undefined,
  report: Report,
): void {
  const name = (listener: ListenerDraft): string => formatAddress(unmap(listener.table.address));
  const problem = `this backend is our own listener ${name(first)}`;
  const round =
    way === undefined
      ? ''
      : `, and leads back here: ${way.slice(0, NAMED_MAX).map(name).join(' -> ')}${andMore(way.length)}`;
  const fix = 'name the server behind it instead, or use another port';
  report.error(path, problem + round, fix);
}

function andMore(count: number): string {
  return count > NAMED_MAX ? ` and ${count - NAMED_MAX} more` : '';
}
