/** Backends in the test's own process, which answer `name: payload` and remember what reached them. */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import { decodeDgramHeader, formatAddress } from '../../core/index.ts';
import { Mailbox } from './mailbox.ts';

export interface BackendOptions {
  /** 127.0.0.1 unless given. */
  readonly address?: string;
  /** The kernel's choice unless given. */
  readonly port?: number;
  /** How often each datagram is answered at once: 1 unless given, 0 for a mute backend. */
  readonly answers?: number;
}

/** One datagram at a backend. */
export interface Arrival {
  /** Without the PROXY header. */
  readonly payload: Buffer;
  /** With it. */
  readonly datagram: Buffer;
  /** The client that the PROXY header names, `ip:port`; without one, what kind of start this is. */
  readonly client: string;
  /** The proxy's upstream socket: one port for each flow. */
  readonly from: RemoteInfo;
  /** An answer of the test's own, at its own time. */
  reply(payload: string): void;
}

export class Backend {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  readonly arrivals: Mailbox<Arrival>;
  private readonly socket: Socket;

  constructor(name: string, socket: Socket, answers: number) {
    this.name = name;
    this.socket = socket;
    ({ address: this.address, port: this.port } = socket.address());
    this.arrivals = new Mailbox(`backend ${name}`);
    socket.on('message', (datagram, from) => {
      const arrival = this.read(datagram, from);
      for (let answer = 0; answer < answers; answer += 1) {
        socket.send([`${name}: `, arrival.payload], from.port, from.address);
      }
      this.arrivals.push(arrival);
    });
  }

  /** `ip:port` as a configuration has it. */
  get endpoint(): string {
    return this.address.includes(':')
      ? `[${this.address}]:${this.port}`
      : `${this.address}:${this.port}`;
  }

  /** The payloads that arrived so far. */
  get heard(): string[] {
    return this.arrivals.all.map(({ payload }) => String(payload));
  }

  /** Frees the port: from here on the kernel refuses what is sent there. */
  async stop(): Promise<void> {
    this.socket.close();
    await once(this.socket, 'close');
  }

  private read(datagram: Buffer, from: RemoteInfo): Arrival {
    const header = decodeDgramHeader(datagram);
    const payload = 'payloadOffset' in header ? datagram.subarray(header.payloadOffset) : datagram;
    const reply = (text: string): void => this.socket.send(text, from.port, from.address);
    const client = header.kind === 'Proxied' ? formatAddress(header.source) : header.kind;
    return { payload, datagram, client, from, reply };
  }
}

/** A backend, until the end of the test or `stop`. */
export async function startBackend(name: string, options: BackendOptions = {}): Promise<Backend> {
  const address = options.address ?? '127.0.0.1';
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
  let open = true;
  socket.once('close', () => {
    open = false;
  });
  onTestFinished(() => {
    if (open) socket.close();
  });
  socket.bind(options.port ?? 0, address);
  await once(socket, 'listening');
  return new Backend(name, socket, options.answers ?? 1);
}
