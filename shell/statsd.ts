/**
 * A push to a statsd over UDP, as the reference has it (spec §9): its names, deltas of counters and values of gauges, once a
 * second, and nothing for what did not change. Best effort by nature: what is lost is not sent again.
 */
import type { Socket } from 'node:dgram';
import {
  activeFlows,
  CATALOGUE,
  CLUSTER_CATALOGUE,
  droppedDatagrams,
  type ClusterMetrics,
  type PlaneFigures,
} from '../core/index.ts';
import type { StatsdSettings } from './config/watchers.ts';
import { openConnected } from './drivers/dgram.ts';
import { CLUSTER_PLACES, LISTENER_KEYS } from './metrics/catalogue.ts';

/** Fits an Ethernet frame under IPv6 with room for a tunnel. */
export const BATCH_BYTES_MAX = 1_400;
const INTERVAL_MILLISECONDS = 1_000;

export interface StatsdSources {
  /** Called before each reading; what has settled is read. */
  refresh(): Promise<unknown>;
  readonly measured: StatsdFigures;
}

interface StatsdFigures {
  readonly figures: Pick<PlaneFigures, 'totals' | 'failOpenSelections'>;
  readonly clusterSums: Pick<ClusterMetrics, 'sums'>;
}

export class Statsd {
  private readonly settings: StatsdSettings;
  private readonly sources: StatsdSources;
  private readonly sent = new Map<string, number>();
  private readonly timer: NodeJS.Timeout;
  private socket: Socket | undefined;
  private failures = 0;
  private isClosed = false;

  constructor(settings: StatsdSettings, sources: StatsdSources) {
    this.settings = settings;
    this.sources = sources;
    this.timer = setInterval(() => void this.pushAnew(), INTERVAL_MILLISECONDS);
    this.timer.unref();
  }

  /** Datagrams that could not be sent. */
  get failed(): number {
    return this.failures;
  }

  /** The last figures leave first. */
  close(): void {
    clearInterval(this.timer);
    this.isClosed = true;
    this.push();
    this.socket?.close();
    this.socket = undefined;
  }

  private async pushAnew(): Promise<void> {
    await this.sources.refresh();
    if (!this.isClosed) this.push();
  }

  private push(): void {
    this.socket ??= this.open();
    for (const batch of batches(this.news())) {
      if (this.socket === undefined) this.failures += 1;
      else
        this.socket.send(batch, (error) => {
          if (error !== null) this.failures += 1;
        });
    }
  }

  private open(): Socket | undefined {
    const socket = openConnected(this.settings.address);
    if (typeof socket === 'string') return undefined;
    socket.on('error', () => {
      this.failures += 1;
    });
    socket.unref();
    return socket;
  }

  /** Lines for whatever changed. */
  private news(): string[] {
    const { figures, clusterSums } = this.sources.measured;
    const { totals, failOpenSelections: failOpen } = figures;
    const sums = new Figures();
    const put = (kind: Kind, name: string, value: number, cluster?: string): void =>
      sums.add(kind, this.fullName(name, cluster), value);
    for (const key of LISTENER_KEYS) put('counter', CATALOGUE[key].name, totals[key]);
    put('counter', 'udp.datagrams.dropped', droppedDatagrams(totals));
    put('gauge', 'udp.active_flows', activeFlows(totals));
    for (const [cluster, counted] of this.settings.clusters ? clusterSums.sums : []) {
      for (const { key } of CLUSTER_PLACES) {
        const { name, kind } = CLUSTER_CATALOGUE[key];
        const value = key === 'failOpen' ? (failOpen.get(cluster) ?? 0) : counted[key];
        put(kind, name, value, cluster);
      }
    }
    return sums.entries.flatMap(([name, figure]) => this.line(name, figure));
  }

  private line(name: string, { kind, value }: Figure): string[] {
    const before = this.sent.get(name);
    this.sent.set(name, value);
    if (kind === 'gauge') return before === value ? [] : [`${name}:${value}|g`];
    const delta = value - (before ?? 0);
    return delta === 0 ? [] : [`${name}:${delta}|c`];
  }

  private fullName(name: string, cluster: string | undefined): string {
    const { prefix, tagged } = this.settings;
    if (cluster === undefined) return `${prefix}.${name}`;
    const safe = cluster.slice(0, CLUSTER_LENGTH_MAX).replaceAll(/[^A-Za-z0-9_-]/g, '_');
    return tagged ? `${prefix}.${name},cluster_id=${safe}` : `${prefix}.${safe}.${name}`;
  }
}

type Kind = 'counter' | 'gauge';

interface Figure {
  readonly kind: Kind;
  readonly value: number;
}

/** Sums by name: clusters whose names differ only in what a statsd does not take share one. */
class Figures {
  private readonly byName = new Map<string, Figure>();

  get entries(): [string, Figure][] {
    return [...this.byName];
  }

  add(kind: Kind, name: string, value: number): void {
    this.byName.set(name, { kind, value: value + (this.byName.get(name)?.value ?? 0) });
  }
}

/** A name has room in a batch, whatever an operator calls a cluster. */
const CLUSTER_LENGTH_MAX = 200;

/** Lines joined to datagrams, as few as there can be in this order. */
export function batches(lines: readonly string[]): string[] {
  const joined: string[] = [];
  for (const line of lines) {
    const last = joined.at(-1);
    if (
      last === undefined ||
      Buffer.byteLength(last) + 1 + Buffer.byteLength(line) > BATCH_BYTES_MAX
    )
      joined.push(line);
    else joined[joined.length - 1] = `${last}\n${line}`;
  }
  return joined;
}
