/**
 * The HTTP server for whoever watches: metrics, liveness and readiness, status, flows and events, all of it read-only. It
 * shares its thread with the data path, so everything that a stranger could make it hold or do has a bound.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { formatAddress, type Address, type Command, type Reply } from '../core/index.ts';
import { EventStream } from './admin/event-stream.ts';
import { flowsPage } from './admin/flows-page.ts';
import { Guard, REFUSALS, type GuardOptions, type Refusal } from './admin/guard.ts';
import { PROTOCOL_VERSION } from './control/requests.ts';
import type { View } from './control/views.ts';
import { ipText } from './drivers/address-text.ts';
import { errnoOf } from './drivers/dgram.ts';
import type { Exposition } from './exposition.ts';
import type { Proxy } from './proxy.ts';

/** Connections at a time; more are closed at once. */
const CONNECTIONS_MAX = 64;
const HEADER_BYTES_MAX = 8_192;
const HEADERS_MILLISECONDS = 5_000;
const REQUEST_MILLISECONDS = 10_000;
const KEEP_ALIVE_MILLISECONDS = 5_000;
/** A connection on which nothing moves; an event stream has its heartbeat. */
const SILENCE_MILLISECONDS = 60_000;
const REQUESTS_PER_CONNECTION_MAX = 1_000;
/** How often the times above are looked at. */
const CHECK_MILLISECONDS = 1_000;

const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const;

const STATUS_OF: Readonly<Record<Refusal, number>> = {
  malformed: 400,
  host: 421,
  method: 405,
  body: 413,
  path: 404,
  token: 401,
  query: 400,
  readers: 503,
  slow_reader: 503,
  connections: 503,
};

export interface AdminOptions extends GuardOptions {
  readonly proxy: Pick<Proxy, 'command' | 'readiness' | 'events' | 'now' | 'refresh'>;
  readonly exposition: Exposition;
  /** What the control socket answers to `status`. */
  readonly overview: () => Promise<View>;
}

type Answer = (response: ServerResponse, query: URLSearchParams) => void | Promise<void>;

export class AdminServer {
  private readonly options: AdminOptions;
  private readonly guard: Guard;
  private readonly server: Server;
  private readonly events: EventStream;
  private readonly quiet: () => void;
  private readonly counts = new Map<Refusal, number>(REFUSALS.map((refusal) => [refusal, 0]));
  private readonly paths: ReadonlyMap<string, Answer> = new Map<string, Answer>([
    ['/live', (response) => send(response, 200, { live: true })],
    ['/ready', (response) => this.ready(response)],
    ['/metrics', (response) => this.metrics(response)],
    ['/status', (response) => this.status(response)],
    ['/flows', (response, query) => this.flows(response, query)],
    ['/events', (response) => this.follow(response)],
  ]);

  constructor(options: AdminOptions) {
    this.options = options;
    this.guard = new Guard(options);
    this.events = new EventStream(
      () => options.proxy.now(),
      () => this.count('slow_reader'),
    );
    this.quiet = options.proxy.events.subscribe((event) => this.events.tell(event));
    this.server = createServer(
      {
        maxHeaderSize: HEADER_BYTES_MAX,
        headersTimeout: HEADERS_MILLISECONDS,
        requestTimeout: REQUEST_MILLISECONDS,
        keepAliveTimeout: KEEP_ALIVE_MILLISECONDS,
        connectionsCheckingInterval: CHECK_MILLISECONDS,
      },
      (request, response) => void this.answer(request, response),
    );
    this.server.maxConnections = CONNECTIONS_MAX;
    this.server.maxRequestsPerSocket = REQUESTS_PER_CONNECTION_MAX;
    this.server.timeout = SILENCE_MILLISECONDS;
    this.server.on('drop', () => this.count('connections'));
    this.server.on('clientError', (_, socket) => {
      this.count('malformed');
      // Whoever does not speak HTTP, or too much of it, gets no second try.
      socket.destroy();
    });
  }

  /** The port it listens on, or why it does not (`EADDRINUSE`). */
  listen({ address }: { readonly address: Address }): Promise<number | string> {
    return new Promise((resolve) => {
      this.server.once('error', (error) => resolve(errnoOf(error)));
      this.server.listen({ port: address.port, host: ipText(address) }, () => {
        const bound = this.server.address();
        resolve(typeof bound === 'object' && bound !== null ? bound.port : address.port);
      });
    });
  }

  /** Refusals by reason. */
  get refusals(): ReadonlyMap<Refusal, number> {
    return this.counts;
  }

  close(): void {
    this.quiet();
    this.events.close();
    this.server.close();
    this.server.closeAllConnections();
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
    // Whoever is gone needs no answer; an event for it would be an exception otherwise.
    response.on('error', () => undefined);
    const { method, headers, headersDistinct, url = '' } = request;
    const mark = url.indexOf('?');
    const path = mark < 0 ? url : url.slice(0, mark);
    // Of two hosts, node would believe the first and a proxy before it perhaps the second.
    const [host, ...others] = headersDistinct['host'] ?? [];
    const { authorization } = headers;
    const refusal = this.guard.refusal({
      method,
      path,
      host: others.length === 0 ? host : undefined,
      authorization,
      hasBody: hasBody(request),
    });
    if (refusal !== undefined) return this.refuse(response, refusal);
    const answer = this.paths.get(path);
    if (answer === undefined) return this.refuse(response, 'path');
    try {
      await answer(response, new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1)));
    } catch (error) {
      // A bug of ours must be seen, and not as a request that never ends.
      response.destroy();
      process.nextTick(() => {
        throw error;
      });
    }
  }

  private async ready(response: ServerResponse): Promise<void> {
    await this.options.proxy.refresh();
    const readiness = this.options.proxy.readiness;
    send(response, readiness.ready ? 200 : 503, readiness);
  }

  private async metrics(response: ServerResponse): Promise<void> {
    const { exposition } = this.options;
    const text = await exposition.text();
    response.writeHead(200, { 'content-type': exposition.contentType });
    response.end(text);
  }

  private async status(response: ServerResponse): Promise<void> {
    const { proxy, overview } = this.options;
    const told = await overview();
    send(response, 200, { v: PROTOCOL_VERSION, ...proxy.readiness, ...told });
  }

  private async flows(response: ServerResponse, query: URLSearchParams): Promise<void> {
    const page = await flowsPage(query, (command) => this.ask(command));
    if ('problem' in page) this.refuse(response, 'query', page.problem);
    else sendJson(response, 200, page.json);
  }

  private follow(response: ServerResponse): void {
    if (!this.events.open(response)) this.refuse(response, 'readers');
  }

  private ask(command: Command): Promise<Reply> {
    return new Promise((resolve) => this.options.proxy.command(command, resolve));
  }

  private refuse(response: ServerResponse, refusal: Refusal, message?: string): void {
    this.count(refusal);
    if (refusal === 'method') response.setHeader('allow', 'GET, HEAD');
    if (refusal === 'token') response.setHeader('www-authenticate', 'Bearer');
    // A body that nobody wants is not awaited either.
    response.setHeader('connection', 'close');
    send(response, STATUS_OF[refusal], { refused: refusal, message });
  }

  private count(refusal: Refusal): void {
    this.counts.set(refusal, (this.counts.get(refusal) ?? 0) + 1);
  }
}

/** Where the server is reached, for the log. */
export function urlOf(address: Address, port: number): string {
  return `http://${formatAddress({ ...address, port })}`;
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
}

function send(response: ServerResponse, code: number, data: unknown): void {
  sendJson(response, code, JSON.stringify(data));
}

function sendJson(response: ServerResponse, code: number, json: string): void {
  response.writeHead(code, { 'content-type': 'application/json; charset=utf-8' });
  response.end(`${json}\n`);
}
