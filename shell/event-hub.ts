/**
 * Where the proxy tells what happens to it, for whoever wants to hear: event streams, and metrics that fold them. Nobody has to
 * listen, and nobody who does can hold or fail the proxy.
 */
import type { ControlEvent, Report } from '../core/index.ts';
import type { ReloadRecord } from './reloader.ts';

export type ProxyEvent =
  | ControlEvent
  | Extract<Report, { kind: 'ListenerOpened' | 'ListenerFailed' | 'ListenerClosed' }>
  | { readonly kind: 'Reload'; readonly reload: ReloadRecord };

export type EventHearer = (event: ProxyEvent) => void;

export class EventHub {
  private readonly hearers = new Set<EventHearer>();

  /** Calls `hear` with every event from now on, until the returned function is called. It must not throw. */
  subscribe(hear: EventHearer): () => void {
    this.hearers.add(hear);
    return () => void this.hearers.delete(hear);
  }

  publish(event: ProxyEvent): void {
    for (const hear of this.hearers) hear(event);
  }
}
