/** A client of the control socket that sends and hears whatever it likes. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import { Mailbox } from './e2e/mailbox.ts';

export type Line = Readonly<Record<string, unknown>>;

/** Speaks lines, right or wrong. */
export class RawClient {
  readonly socket: Socket;
  readonly heard: Mailbox<Line> = new Mailbox('the control socket');
  readonly closed: Promise<void>;
  private id = 0;

  constructor(path: string) {
    this.socket = connect(path);
    // Whoever is cut off while he sends sees an error.
    this.socket.on('error', () => undefined);
    createInterface({ input: this.socket })
      .on('line', (line) => this.heard.push(parsed(line)))
      .on('error', () => undefined);
    this.closed = new Promise((resolve) => {
      this.socket.once('close', () => {
        this.heard.close('but the connection is closed');
        resolve();
      });
    });
    onTestFinished(() => void this.socket.destroy());
  }

  /** Sends a request, and awaits its reply. */
  async ask(command: string, more: object = {}): Promise<Line> {
    this.id += 1;
    const { id } = this;
    this.socket.write(`${JSON.stringify({ v: 1, id, command, ...more })}\n`);
    return this.heard.first((line) => line['id'] === id && 'ok' in line, `the reply to ${command}`);
  }
}

/** Once it is connected. */
export async function openRaw(path: string): Promise<RawClient> {
  const client = new RawClient(path);
  await once(client.socket, 'connect');
  return client;
}

/** One line of JSON. */
export function parsed(line: string): Line {
  const value: unknown = JSON.parse(line);
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
