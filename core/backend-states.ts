/**
 * What operators want of backends: active, draining until a deadline, drained, disabled. A drain ends when no flow is left or
 * its time is over, because a client that keeps sending would hold it open for ever.
 */
import { formatAddress, unmap, type Address } from './address.ts';
import { assertNever } from './assert.ts';
import type { BackendCommand, BackendOutcome } from './backend-commands.ts';
import type { OperatorState } from './balancing/candidates.ts';
import { refused, type Refused } from './commands.ts';
import type { ClusterSettings } from './config.ts';
import type { Directive, Report } from './directives.ts';
import { OutputQueue } from './output-queue.ts';
import { after, type Instant } from './time.ts';

/** What an operator is told of a drain. */
export type DrainEvent =
  /** So many flows are left: at first, and a few times a second when that changed. */
  | {
      readonly kind: 'BackendDraining';
      readonly cluster: string;
      readonly address: Address;
      readonly flowsLeft: number;
    }
  /** It is over, told once. Flows that were left go the way of `on_backend_removed`. */
  | {
      readonly kind: 'BackendDrained';
      readonly cluster: string;
      readonly address: Address;
      readonly flowsLeft: number;
      readonly reason: 'empty' | 'deadline';
    };

type StateDirective = Extract<Directive, { kind: 'SetBackendState' }>;

export type StatesOutput = StateDirective | DrainEvent;

export interface DrainWake {
  readonly at: Instant;
  readonly reason: 'backend-drain-deadline';
}

/** One backend that is not active. */
interface Closing {
  readonly cluster: string;
  readonly address: Address;
  readonly state: Exclude<OperatorState, 'active'>;
  /** Numbers what operators and drains did, over all backends: no two are ever the same. */
  readonly change: number;
  readonly deadline: Instant | undefined;
  /** As last reported. */
  flowsLeft: number;
}

/** After each input, every output is polled before the next input. */
export class BackendStates {
  private readonly addresses = new Map<string, ReadonlySet<string>>();
  private readonly closing = new Map<string, Closing>();
  private readonly outputs = new OutputQueue<StatesOutput>();
  private changes = 0;

  /** All clusters there are. A backend that stays keeps its state; one that comes, or comes back, is active. */
  configure(clusters: readonly Pick<ClusterSettings, 'cluster' | 'backends'>[]): void {
    this.addresses.clear();
    for (const { cluster, backends } of clusters) {
      this.addresses.set(cluster, new Set(backends.map(({ address }) => formatAddress(address))));
    }
    for (const [key, { cluster, address }] of this.closing) {
      if (!this.knows(cluster, address)) this.closing.delete(key);
    }
  }

  /** A refused command changes nothing; one that finds things as it wants them says so and changes nothing either. */
  command(asked: BackendCommand, now: Instant): BackendOutcome {
    const command = { ...asked, address: unmap(asked.address) };
    const refusal = this.refusal(command);
    if (refusal !== undefined) return refusal;
    const before = this.closing.get(keyOf(command));
    const wanted = this.apply(command, before, now);
    return { ok: true, changed: wanted !== before, state: wanted?.state ?? 'active' };
  }

  /** Word of a data plane. What belongs to an earlier drain, or to none, says nothing. */
  reported(report: Extract<Report, { kind: 'BackendFlows' }>): void {
    const one = this.closing.get(keyOf(report));
    if (one === undefined || one.state !== 'draining' || one.change !== report.change) return;
    const { cluster, address } = one;
    one.flowsLeft = report.flows;
    if (report.flows === 0) return this.drained(one, 'empty');
    this.outputs.push({ kind: 'BackendDraining', cluster, address, flowsLeft: report.flows });
  }

  /** Ends the drains whose deadline has come. */
  handleTimeout(now: Instant): void {
    for (const one of this.closing.values()) {
      if (one.deadline !== undefined && one.deadline <= now) this.drained(one, 'deadline');
    }
  }

  pollOutput(): StatesOutput | undefined {
    return this.outputs.poll();
  }

  /** The earliest deadline of a drain. */
  nextWake(): DrainWake | undefined {
    let at: Instant | undefined;
    for (const { deadline } of this.closing.values()) {
      if (deadline !== undefined && (at === undefined || deadline < at)) at = deadline;
    }
    return at === undefined ? undefined : { at, reason: 'backend-drain-deadline' };
  }

  /** Active where nobody said otherwise. */
  stateOf(cluster: string, address: Address): OperatorState {
    return this.closing.get(keyOf({ cluster, address }))?.state ?? 'active';
  }

  /** Whether new flows are kept from it. */
  isClosing(cluster: string, address: Address): boolean {
    return this.stateOf(cluster, address) !== 'active';
  }

  /** Tells a state again, for a data plane that may not know it; it takes a backend for active. */
  repeat(cluster: string, address: Address): void {
    const one = this.closing.get(keyOf({ cluster, address }));
    if (one !== undefined) this.direct(one);
  }

  private knows(cluster: string, address: Address): boolean {
    return this.addresses.get(cluster)?.has(formatAddress(address)) === true;
  }

  private refusal(command: BackendCommand): Refused | undefined {
    const { cluster, address } = command;
    if (!this.addresses.has(cluster)) {
      return refused('NotFound', `there is no cluster "${cluster}"`);
    }
    const backend = formatAddress(address);
    if (!this.knows(cluster, address)) {
      return refused('NotFound', `cluster "${cluster}" has no backend ${backend}`);
    }
    if (command.kind === 'UndrainBackend' || command.force === true) return undefined;
    if (this.stateOf(cluster, address) !== 'active' || this.activeIn(cluster) > 1) return undefined;
    const message = `${backend} is the last active backend of cluster "${cluster}": without it new flows are refused`;
    return refused('LastBackend', message);
  }

  private activeIn(cluster: string): number {
    let active = this.addresses.get(cluster)?.size ?? 0;
    for (const one of this.closing.values()) if (one.cluster === cluster) active -= 1;
    return active;
  }

  /** The backend's entry from now on: `before` itself when that is what the command wants. */
  private apply(
    command: BackendCommand,
    before: Closing | undefined,
    now: Instant,
  ): Closing | undefined {
    switch (command.kind) {
      case 'UndrainBackend':
        return this.activate(before);
      case 'DisableBackend':
        return before?.state === 'disabled' ? before : this.close(command, 'disabled', undefined);
      case 'DrainBackend': {
        const { deadline } = command;
        const at = deadline === undefined ? undefined : after(now, deadline);
        if (before?.state === 'drained') return before;
        if (before?.state === 'draining' && before.deadline === at) return before;
        return this.close(command, 'draining', at);
      }
      default:
        return assertNever(command);
    }
  }

  private activate(before: Closing | undefined): undefined {
    if (before === undefined) return;
    this.closing.delete(keyOf(before));
    this.changes += 1;
    const { cluster, address } = before;
    const news = { cluster, address, state: 'active', change: this.changes } as const;
    this.outputs.push({ kind: 'SetBackendState', ...news });
  }

  private close(
    { cluster, address }: Pick<Closing, 'cluster' | 'address'>,
    state: Closing['state'],
    deadline: Instant | undefined,
  ): Closing {
    this.changes += 1;
    const known = this.closing.get(keyOf({ cluster, address }));
    const flowsLeft = known?.flowsLeft ?? 0;
    const one = { cluster, address, state, change: this.changes, deadline, flowsLeft };
    this.closing.set(keyOf(one), one);
    this.direct(one);
    return one;
  }

  private drained(one: Closing, reason: 'empty' | 'deadline'): void {
    const { cluster, address, flowsLeft } = this.close(one, 'drained', undefined);
    this.outputs.push({ kind: 'BackendDrained', cluster, address, flowsLeft, reason });
  }

  private direct({ cluster, address, state, change }: Closing): void {
    this.outputs.push({ kind: 'SetBackendState', cluster, address, state, change });
  }
}

function keyOf({ cluster, address }: { cluster: string; address: Address }): string {
  return `${formatAddress(address)} ${cluster}`;
}
