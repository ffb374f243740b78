/**
 * One client of the control socket. Its requests are done one after the other and its lines are bounded, so what it can make
 * the proxy keep is bounded too, whatever it sends and however slowly it reads.
 */
import type { Socket } from 'node:net';
import { encodeLine, decodeRequest, LineSplitter, REQUEST_BYTES_MAX } from './codec.ts';
import { badRequest, refusal } from './replies.ts';
import type { Asker, ControlService } from './service.ts';

/** Waiting for a client that reads slowly; what comes while there is more is counted and not kept. */
export const EVENT_BYTES_MAX: number = 256 * 1024;

export interface ConnectionOptions {
  readonly socket: Socket;
  readonly service: ControlService;
  /** Of silence, or of not reading what waits; then it is closed. Whoever waits for events may be silent. */
  readonly idleMilliseconds: number;
  /** Says whether there is room for one more that hears events; the returned function gives it back. */
  readonly subscribe: (hear: (event: object) => void) => (() => void) | undefined;
}

export class Connection implements Asker {
  private readonly socket: Socket;
  private readonly service: ControlService;
  private readonly subscribeTo: ConnectionOptions['subscribe'];
  private readonly splitter = new LineSplitter(REQUEST_BYTES_MAX);
  /** Lines of the last chunk that were not looked at yet. */
  private lines: Uint8Array[] = [];
  private isWorking = false;
  private hasEnded = false;
  private unsubscribe: (() => void) | undefined;
  private missed = 0;
  /** Of the request at hand. */
  private id = 0;
  private isLeaving = false;

  constructor({ socket, service, idleMilliseconds, subscribe }: ConnectionOptions) {
    this.socket = socket;
    this.service = service;
    this.subscribeTo = subscribe;
    socket.setTimeout(idleMilliseconds);
    socket.on('timeout', () => this.onSilence());
    socket.on('data', (chunk: Uint8Array) => this.onData(chunk));
    socket.on('drain', () => this.onRoom());
    socket.on('end', () => this.onEnd());
    socket.on('close', () => this.unsubscribe?.());
    // A client that goes away is no error of ours.
    socket.on('error', () => undefined);
  }

  get isGone(): boolean {
    return this.socket.destroyed;
  }

  part(body: object): Promise<void> {
    return this.send({ id: this.id, part: body });
  }

  /** False where too many others hear already. */
  subscribe(): boolean {
    this.unsubscribe ??= this.subscribeTo((event) => this.onEvent(event));
    return this.unsubscribe !== undefined;
  }

  /** What is answered now still leaves, and no more is done. */
  close(): void {
    this.hasEnded = true;
    this.lines = [];
    this.socket.unref();
    if (!this.isWorking) this.end();
  }

  private onData(chunk: Uint8Array): void {
    if (this.isLeaving) return undefined;
    const lines = this.splitter.push(chunk);
    if (lines === undefined) return this.refuse('a request has at most 1 MiB');
    this.lines.push(...lines);
    void this.work();
    return undefined;
  }

  private onEnd(): void {
    this.hasEnded = true;
    if (this.splitter.isInside) return this.refuse('the last line has no end');
    void this.work();
    return undefined;
  }

  /** One request after the other, each when it is this client's turn; meanwhile nothing more is read. */
  private async work(): Promise<void> {
    if (this.isWorking) return;
    this.isWorking = true;
    this.socket.pause();
    while (this.lines.length > 0) {
      await this.service.turns.next();
      const line = this.lines.shift();
      if (line !== undefined) await this.answer(line);
      if (this.isGone || this.isLeaving) return;
    }
    this.isWorking = false;
    if (this.hasEnded) this.end();
    else this.socket.resume();
  }

  private async answer(line: Uint8Array): Promise<void> {
    const decoded = decodeRequest(line);
    this.id = decoded.id;
    if (decoded.ok) {
      const reply = await this.service.handle(decoded, this);
      return this.send({ id: decoded.id, ...reply });
    }
    const reply = { id: decoded.id, ...badRequest(decoded.problems) };
    if (!decoded.broken) return this.send(reply);
    return this.leave(reply);
  }

  private refuse(message: string): void {
    this.leave({ id: 0, ...refusal({ kind: 'BadRequest', message }) });
  }

  /** Says why, and closes: what follows could be anything, and is not read. */
  private leave(reply: object): void {
    if (this.isLeaving) return;
    this.socket.write(encodeLine(reply));
    this.end();
  }

  /** Closes when all that was answered has left. */
  private end(): void {
    this.isLeaving = true;
    this.lines = [];
    this.socket.pause();
    this.socket.end(() => this.socket.destroy());
  }

  /** Settles when there is room for more, or nobody to read it. */
  private send(body: object): Promise<void> {
    return new Promise((resolve) => {
      const { socket } = this;
      if (this.isGone || socket.writableEnded || socket.write(encodeLine(body))) return resolve();
      const done = (): void => {
        socket.off('drain', done);
        socket.off('close', done);
        resolve();
      };
      socket.on('drain', done);
      socket.on('close', done);
    });
  }

  private onEvent(event: object): void {
    const { socket } = this;
    if (socket.writableEnded || socket.destroyed) return;
    if (socket.writableLength > EVENT_BYTES_MAX) this.missed += 1;
    else socket.write(encodeLine({ event }));
  }

  private onRoom(): void {
    if (this.missed === 0 || this.socket.writableEnded) return;
    this.socket.write(encodeLine({ missed: this.missed }));
    this.missed = 0;
  }

  /** Whoever reads nothing of what waits for him, or says nothing and hears nothing, only takes a place. */
  private onSilence(): void {
    const isStuck = this.socket.writableLength > 0;
    const isBusy = this.isWorking || this.unsubscribe !== undefined;
    if (isStuck || !isBusy) this.socket.destroy();
  }
}
