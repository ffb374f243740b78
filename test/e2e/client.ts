/** UDP clients: one socket, one client. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import { Mailbox } from './mailbox.ts';

export interface ClientOptions {
  /** The listener's port. */
  readonly to: number;
  /** Where the listener is reached; 127.0.0.1 unless given. */
  readonly at?: string;
  /** Own address; any of the same family unless given. */
  readonly from?: string;
}

export class Client {
  /** Every reply. The socket is connected: the kernel lets nothing in but what comes from the listener's address. */
  readonly replies: Mailbox<Buffer>;
  private readonly socket: Socket;

  constructor(socket: Socket) {
    this.socket = socket;
    this.replies = new Mailbox(`client ${this.port}`);
    socket.on('message', (payload) => this.replies.push(payload));
  }

  get port(): number {
    return this.socket.address().port;
  }

  /** Fulfilled when the kernel has it: on loopback it is then in the listener's buffer, or nowhere. */
  send(payload: string | Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.socket.send(payload, (error) => (error === null ? resolve() : reject(error)));
    });
  }

  /** Sends, and awaits the next reply. */
  async ask(payload: string | Uint8Array): Promise<string> {
    await this.send(payload);
    return String(await this.replies.next());
  }
}

/** A client, until the end of the test. */
export async function openClient(options: ClientOptions): Promise<Client> {
  const at = options.at ?? '127.0.0.1';
  const socket = createSocket(at.includes(':') ? 'udp6' : 'udp4');
  onTestFinished(async () => {
    socket.close();
    await once(socket, 'close');
  });
  socket.bind(0, options.from);
  await once(socket, 'listening');
  socket.connect(options.to, at);
  await once(socket, 'connect');
  return new Client(socket);
}

/** So many clients of one listener. */
export function openClients(count: number, options: ClientOptions): Promise<Client[]> {
  return Promise.all(Array.from({ length: count }, () => openClient(options)));
}
