/**
 * The control plane's events for readers over HTTP, as server-sent events. A reader that does not keep up is cut off: an
 * operator who watches must never cost the process more than a few kilobytes.
 */
import type { ServerResponse } from 'node:http';
import type { Instant } from '../../core/index.ts';
import { eventView } from '../control/views.ts';
import type { ProxyEvent } from '../event-hub.ts';

/** Readers at a time. */
const EVENT_READERS_MAX = 8;
/** What may wait for one reader. */
const EVENT_BYTES_WAITING_MAX = 65_536;
/** A comment this often keeps proxies from closing a quiet stream, and finds readers that are gone. */
const HEARTBEAT_MILLISECONDS = 15_000;

export class EventStream {
  private readonly readers = new Set<ServerResponse>();
  private readonly now: () => Instant;
  private readonly cutOff: () => void;
  private readonly heartbeat: NodeJS.Timeout;
  private serial = 0;

  /** `now` is the proxy's clock; `cutOff` is told of each reader that was too slow. */
  constructor(now: () => Instant, cutOff: () => void) {
    this.now = now;
    this.cutOff = cutOff;
    this.heartbeat = setInterval(() => this.write(': still here\n\n'), HEARTBEAT_MILLISECONDS);
    this.heartbeat.unref();
  }

  /** Takes over a response, or says that there are too many readers. */
  open(response: ServerResponse): boolean {
    if (this.readers.size >= EVENT_READERS_MAX) return false;
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    response.write(': events from now on\n\n');
    this.readers.add(response);
    response.on('close', () => this.readers.delete(response));
    return true;
  }

  tell(event: ProxyEvent): void {
    this.serial += 1;
    if (this.readers.size === 0) return;
    this.write(
      `id: ${this.serial}\nevent: ${event.kind}\ndata: ${JSON.stringify(eventView(event, this.now()))}\n\n`,
    );
  }

  close(): void {
    clearInterval(this.heartbeat);
    for (const reader of this.readers) reader.end();
  }

  private write(text: string): void {
    for (const reader of this.readers) {
      if (reader.writableLength + text.length > EVENT_BYTES_WAITING_MAX) {
        this.readers.delete(reader);
        this.cutOff();
        reader.destroy();
      } else {
        reader.write(text);
      }
    }
  }
}
