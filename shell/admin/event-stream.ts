/**
 * The control plane's events for readers over HTTP, as server-sent events. A reader that does not keep up is cut off: an
 * operator who watches must never cost the process more than a few kilobytes.
 */
import type { ServerResponse } from 'node:http';
import type { ProxyEvent } from '../event-hub.ts';
import { toJson } from './json.ts';

/** Readers at a time. */
const EVENT_READERS_MAX = 8;
/** What may wait for one reader. */
const EVENT_BYTES_WAITING_MAX = 65_536;
/** A comment this often keeps proxies from closing a quiet stream, and finds readers that are gone. */
const HEARTBEAT_MILLISECONDS = 15_000;

export class EventStream {
  private readonly readers = new Set<ServerResponse>();
  private readonly cutOff: () => void;
  private readonly heartbeat: NodeJS.Timeout;
  private serial = 0;

  /** `cutOff` is told of each reader that was too slow. */
  constructor(cutOff: () => void) {
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
    this.write(`id: ${this.serial}\nevent: ${event.kind}\ndata: ${toJson(shown(event))}\n\n`);
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

/** Of a reload only how it went: its settings are nobody's business. */
function shown(event: ProxyEvent): unknown {
  if (event.kind !== 'Reload') return event;
  const { at, cause, outcome } = event.reload;
  if (!outcome.ok) return { kind: event.kind, at, cause, ok: false, error: outcome.error };
  const { ok, changed, commands, generation } = outcome;
  return { kind: event.kind, at, cause, ok, changed, commands, generation };
}
