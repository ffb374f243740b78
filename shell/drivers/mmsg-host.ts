/**
 * The batching driver in Node's own event loop, for a process that gives it no thread: each round of the loop lets it wait for
 * a millisecond, which everything else in the process waits too.
 */
import type { Address, Instant, ListenerId, ListenerSocket, Opened } from '../../core/index.ts';
import { MmsgDriver } from './mmsg.ts';

export class HostedMmsgDriver extends MmsgDriver {
  private dueIn: NodeJS.Immediate | undefined;

  override openListener(id: ListenerId, address: Address, wanted: ListenerSocket): Opened {
    const failed = super.openListener(id, address, wanted);
    this.goOn();
    return failed;
  }

  override wakeAt(at: Instant | undefined): void {
    super.wakeAt(at);
    this.goOn();
  }

  /** Without a socket and a time there is nothing to wait for, and the process may end. */
  private goOn(): void {
    if (this.socketCount === 0 && !this.isArmed) return;
    this.dueIn ??= setImmediate(() => {
      this.dueIn = undefined;
      this.turn(1);
      this.goOn();
    });
  }
}
