/** How far the drains of backends are, over several data planes: each says how many flows it has left, and the sum is told. */
import { formatAddress, type Address } from './address.ts';
import type { Directive, Report } from './directives.ts';

type FlowsReport = Extract<Report, { kind: 'BackendFlows' }>;
type StateDirective = Extract<Directive, { kind: 'SetBackendState' }>;

interface Drain {
  readonly cluster: string;
  readonly address: Address;
  /** Of the operators, as `SetBackendState` has it. */
  readonly change: number;
  /** The newest figure of each plane that gave one. */
  readonly flows: Map<number, number>;
}

export class SharedDrains {
  private readonly count: number;
  private readonly report: (report: Report) => void;
  private readonly drains = new Map<string, Drain>();

  constructor(count: number, report: (report: Report) => void) {
    this.count = count;
    this.report = report;
  }

  /** What all planes are told. Whatever ends a drain makes its figures nobody's. */
  directed(directive: Directive): void {
    if (directive.kind === 'SetBackendState') return this.stateSet(directive);
    if (directive.kind === 'RemoveCluster') return this.keep(directive.cluster, []);
    if (directive.kind === 'SetCluster') {
      const { cluster, backends } = directive.settings;
      this.keep(cluster, backends);
    }
    return undefined;
  }

  /** Told once all planes have spoken: nothing is over before it is over everywhere. */
  heard(plane: number, report: FlowsReport): void {
    const drain = this.drains.get(keyOf(report));
    if (drain === undefined || drain.change !== report.change) return;
    drain.flows.set(plane, report.flows);
    if (drain.flows.size < this.count) return;
    let flows = 0;
    for (const left of drain.flows.values()) flows += left;
    this.report({ ...report, flows });
  }

  /** A state that is repeated begins nothing anew. */
  private stateSet({ cluster, address, state, change }: StateDirective): void {
    const key = keyOf({ cluster, address });
    if (state !== 'draining') this.drains.delete(key);
    else if (this.drains.get(key)?.change !== change)
      this.drains.set(key, { cluster, address, change, flows: new Map() });
  }

  private keep(cluster: string, backends: readonly Pick<Drain, 'address'>[]): void {
    const kept = new Set(backends.map(({ address }) => keyOf({ cluster, address })));
    for (const [key, drain] of this.drains) {
      if (drain.cluster === cluster && !kept.has(key)) this.drains.delete(key);
    }
  }
}

function keyOf({ cluster, address }: Pick<Drain, 'cluster' | 'address'>): string {
  return `${formatAddress(address)} ${cluster}`;
}
