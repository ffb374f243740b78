/** A program at the other end of real loopback sockets: what it sends lies in the receiver's socket when the call returns. */
import { createSocket, type Socket } from 'node:dgram';
import { formatIp, parseIp, unmap, type Address } from '../core/address.ts';
import { present } from '../core/assert.ts';
import type { Peer, Received } from './driver-bench.ts';

export class LoopbackPeer implements Peer {
  readonly address: Address;
  readonly mailbox: Received[] = [];
  private socket: Socket;
  private isOpen = true;

  constructor(at: Address) {
    this.socket = this.bind(at);
    this.address = { ...at, port: this.socket.address().port };
  }

  send(to: Address, payload: Uint8Array): void {
    this.socket.send(payload, to.port, formatIp(to));
  }

  close(): void {
    if (this.isOpen) this.socket.close();
    this.isOpen = false;
  }

  reopen(): void {
    this.socket = this.bind(this.address);
  }

  /** Bound when the call returns, because nothing is looked up. */
  private bind(at: Address): Socket {
    const socket = createSocket({
      type: at.family === 4 ? 'udp4' : 'udp6',
      lookup: (host, _options, answer) => answer(null, host, at.family),
    });
    socket.on('message', (payload, remote) => {
      const from = present(parseIp(remote.address, remote.port), 'a source is an address');
      this.mailbox.push({ from: unmap(from), payload: Uint8Array.from(payload) });
    });
    socket.bind(at.port, formatIp(at));
    this.isOpen = true;
    return socket;
  }
}
