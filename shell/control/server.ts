/**
 * The Unix socket of the control commands: whoever may open it may do everything, so it is the owner's alone. One that an
 * earlier process left behind is replaced; one that somebody answers at is not.
 */
import { once } from 'node:events';
import { chmodSync, lstatSync, mkdirSync, statSync, unlinkSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { dirname } from 'node:path';
import type { EventHub } from '../event-hub.ts';
import type { Instant } from '../../core/index.ts';
import { encodeLine } from './codec.ts';
import { Connection } from './connection.ts';
import { refusal } from './replies.ts';
import type { ControlService } from './service.ts';
import { eventView } from './views.ts';

export interface ServerLimits {
  /** Clients at a time. */
  readonly connections: number;
  /** Those among them that hear events: the rest is for whoever has to act. */
  readonly hearers: number;
  readonly idleMilliseconds: number;
}

export const SERVER_LIMITS: ServerLimits = {
  connections: 64,
  hearers: 32,
  idleMilliseconds: 60_000,
};

/** Why there is no socket, and what to do about it. */
export class SocketError extends Error {}

/** What is served. */
export interface Served {
  readonly service: ControlService;
  readonly events: EventHub;
  /** The clock of the events. */
  readonly now: () => Instant;
}

export class ControlServer {
  private readonly server: Server;
  private readonly limits: ServerLimits;
  private readonly connections = new Set<Connection>();
  private served: Served | undefined;
  private hearers = 0;

  /** Opens the socket at `path`. Rejects with a SocketError where that cannot be. Nobody is heard before `serve`. */
  static async open(path: string, limits: ServerLimits = SERVER_LIMITS): Promise<ControlServer> {
    const server = createServer({ allowHalfOpen: true });
    const opened = new ControlServer(server, limits);
    makeFolder(dirname(path));
    try {
      await listen(server, path);
    } catch (error) {
      if (codeOf(error) !== 'EADDRINUSE') throw explain(path, error);
      await removeStale(path);
      await listen(server, path).catch((second: unknown) => {
        throw explain(path, second);
      });
    }
    // Clients that could not be accepted, for want of a descriptor, come again.
    server.on('error', () => undefined);
    return opened;
  }

  private constructor(server: Server, limits: ServerLimits) {
    this.server = server;
    this.limits = limits;
    server.on('connection', (socket) => this.accept(socket));
  }

  /** To be called in the turn in which it was opened. */
  serve(served: Served): void {
    this.served = served;
  }

  /** Removes the socket. Clients get what was answered to them, and the end. */
  close(): void {
    this.server.close();
    for (const connection of this.connections) connection.close();
  }

  private accept(socket: Socket): void {
    const { served, limits } = this;
    if (served === undefined) return void socket.destroy();
    if (this.connections.size >= limits.connections) return refuse(socket, limits.connections);
    const connection = new Connection({
      socket,
      service: served.service,
      idleMilliseconds: limits.idleMilliseconds,
      subscribe: (hear) => this.subscribe(served, hear),
    });
    this.connections.add(connection);
    socket.on('close', () => this.connections.delete(connection));
    return undefined;
  }

  private subscribe(
    { events, now }: Served,
    hear: (event: object) => void,
  ): (() => void) | undefined {
    if (this.hearers === this.limits.hearers) return undefined;
    this.hearers += 1;
    const unsubscribe = events.subscribe((event) => {
      hear({ at: new Date().toISOString(), ...eventView(event, now()) });
    });
    return () => {
      this.hearers -= 1;
      unsubscribe();
    };
  }
}

function refuse(socket: Socket, connections: number): void {
  const message = `there are ${connections} clients already: close some`;
  socket.on('error', () => undefined);
  socket.end(encodeLine({ id: 0, ...refusal({ kind: 'Busy', message }) }), () => socket.destroy());
}

/** Where others may write, they could put a socket of their own in the place of ours. */
function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const { mode, uid } = statSync(folder);
    const isSticky = (mode & 0o1000) !== 0;
    if ((mode & 0o022) !== 0 && !isSticky) {
      throw new SocketError(`others may write in ${folder}: chmod go-w it, or name another`);
    }
    const self = process.getuid?.() ?? 0;
    if (!isSticky && uid !== 0 && self !== 0 && uid !== self) {
      throw new SocketError(`${folder} belongs to another user: name another`);
    }
  } catch (error) {
    throw error instanceof SocketError ? error : explain(folder, error);
  }
}

/** Linux copies so many bytes of a path, with its end. */
const PATH_BYTES_MAX = 107;

async function listen(server: Server, path: string): Promise<void> {
  if (Buffer.byteLength(path) > PATH_BYTES_MAX) {
    throw new SocketError(`${path} is longer than ${PATH_BYTES_MAX} bytes`);
  }
  // The bind happens within the call, so that there is no moment in which others may open the socket.
  const before = process.umask(0o177);
  server.listen(path);
  process.umask(before);
  await once(server, 'listening');
  chmodSync(path, 0o600);
}

/** Rejects unless it is a socket at which nobody answers. */
async function removeStale(path: string): Promise<void> {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket() !== true) {
    throw new SocketError(`${path} is there and is no socket: remove it, or name another`);
  }
  const answers = await new Promise<string>((resolve) => {
    const socket = connect(path);
    socket.on('connect', () => resolve('live'));
    socket.on('error', (error) => resolve(codeOf(error)));
    socket.on('close', () => socket.destroy());
    socket.unref();
  });
  if (answers === 'live') {
    throw new SocketError(`another process serves ${path}: stop it, or name another`);
  }
  if (answers !== 'ECONNREFUSED') throw new SocketError(`${path} cannot be tried: ${answers}`);
  unlinkSync(path);
}

function explain(path: string, error: unknown): SocketError {
  if (error instanceof SocketError) return error;
  const code = codeOf(error);
  const fix = code === 'EACCES' ? ': name a path where this user may write' : '';
  return new SocketError(`cannot open ${path} (${code})${fix}`);
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}
