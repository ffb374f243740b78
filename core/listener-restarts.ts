/**
 * Runs the flow machines of listeners. Where an assertion of one fails, its state can no longer be trusted, and nothing outside
 * of it was touched yet: its flows are closed and another takes its place, under the same socket (decision 0025). More than a
 * few in a minute are a bug that ends the process.
 */
import { AssertionError } from './assert.ts';
import type { Report } from './directives.ts';
import type { GuardedBackends } from './loop-guard.ts';
import type { ManagerInput, ManagerTrain } from './contract.ts';
import type { Listener } from './plane-listener.ts';
import type { Listeners } from './plane-listeners.ts';
import { after, seconds, type Duration, type Instant } from './time.ts';
import { datagramsIn } from './train.ts';

const PERIOD: Duration = seconds(60);

export interface ListenerRestartsOptions {
  /** In a minute, over all listeners; 0: every failure is the caller's. */
  readonly max: number;
  readonly listeners: Listeners;
  /** What flow machines are lent. */
  readonly lent: GuardedBackends;
  readonly drain: (listener: Listener, now: Instant) => void;
  readonly report: (report: Report) => void;
}

export class ListenerRestarts {
  private readonly tools: ListenerRestartsOptions;
  /** When they were, of those in the last minute. */
  private times: Instant[] = [];

  constructor(tools: ListenerRestartsOptions) {
    this.tools = tools;
  }

  /** A datagram for the flow machine of a listener, and all that it brings. */
  datagram(listener: Listener, input: ManagerInput, now: Instant): void {
    try {
      listener.manager.handleInput(input, now);
    } catch (error) {
      return this.restart(listener, error, 1, now);
    }
    return this.tools.drain(listener, now);
  }

  /** The same of a train, if its flow machine takes it as one; else false, and nothing has happened. */
  train(listener: Listener, train: ManagerTrain, now: Instant): boolean {
    try {
      if (!listener.manager.handleTrain(train, now)) return false;
    } catch (error) {
      this.restart(listener, error, datagramsIn(train.payload, train.unit), now);
      return true;
    }
    this.tools.drain(listener, now);
    return true;
  }

  /** Its timer fired. */
  timeout(listener: Listener, now: Instant): void {
    try {
      listener.manager.handleTimeout(now);
    } catch (error) {
      return this.restart(listener, error, 0, now);
    }
    return this.tools.drain(listener, now);
  }

  /**
   * Throws what it was given, unless that is an assertion about this flow machine alone, and not one too many. So many
   * datagrams end with it.
   */
  private restart(listener: Listener, error: unknown, datagrams: number, now: Instant): void {
    const { max, lent, listeners, report } = this.tools;
    if (!(error instanceof AssertionError) || lent.isBusy) throw error;
    this.times = this.times.filter((time) => after(time, PERIOD) > now);
    if (this.times.length >= max) throw error;
    this.times.push(now);
    const flowsClosed = listeners.restart(listener, now);
    const { id, generation, config, counters } = listener;
    counters.droppedClosed += datagrams;
    report({
      kind: 'ListenerRestarted',
      generation,
      listener: id,
      address: config.address,
      flowsClosed,
      claim: error.message,
    });
  }
}
