/**
 * The client sockets of a load generator, and who hears what comes back: whichever traffic has its slice just then. A slice is
 * one kind of traffic from its beginning until everything came back that will.
 */
import { listenerId, parseIp, serialOf, socketId, type Arrivals } from '../../core/index.ts';
import type { PeerDriver } from './peer-driver.ts';

/** What makes datagrams and hears of them; flows are numbers from 0 up. */
export interface Traffic {
  /** A datagram came back; its bytes are lent until the turn is over. */
  reply(flow: number, payload: Uint8Array): void;
  /** The kernel did not take a datagram that was sent. */
  unsent(flow: number): void;
  /** After each turn: sends what is due. Whether the slice is over. */
  tick(now: number): boolean;
}

/** How a traffic sends. `payload` is not changed before the turn is over. */
export interface Sender {
  send(flow: number, payload: Uint8Array): void;
}

const LISTENER = listenerId(0);
const NOBODY: Traffic = { reply: () => undefined, unsent: () => undefined, tick: () => true };
/** Most often a turn ends the wait; this is for what is due without one. */
const CHECK_MS = 1;

export class LoadSockets implements Sender {
  private readonly peer: PeerDriver;
  private readonly ids;
  private traffic: Traffic = NOBODY;

  /** Connects `flows` sockets to a port of 127.0.0.1. */
  constructor(peer: PeerDriver, port: number, flows: number) {
    const [proxy, anyPort] = [parseIp('127.0.0.1', port), parseIp('127.0.0.1', 0)];
    if (proxy === undefined) throw new Error(`no port: ${port}`);
    this.peer = peer;
    peer.driver.attach(this.arrivals());
    this.ids = Array.from({ length: flows }, (_, flow) => {
      const id = socketId(flow, LISTENER);
      const failed = peer.driver.openUpstream(id, proxy, anyPort);
      if (failed !== undefined) throw new Error(`client ${flow}: ${failed}`);
      return id;
    });
  }

  send(flow: number, payload: Uint8Array): void {
    const id = this.ids[flow];
    if (id !== undefined) this.peer.driver.sendToBackend(id, undefined, payload);
  }

  /** Gives the sockets to `traffic` until its slice is over. */
  async run(traffic: Traffic): Promise<void> {
    this.traffic = traffic;
    await this.peer.run(() => {
      const isOver = traffic.tick(performance.now());
      this.flush();
      return isOver;
    }, CHECK_MS);
    this.traffic = NOBODY;
  }

  private flush(): void {
    this.peer.driver.flush((failure) => {
      if (failure.direction === 'to-backend') this.traffic.unsent(serialOf(failure.socket));
    });
  }

  private arrivals(): Arrivals {
    return {
      backendDatagram: (socket, payload) => this.traffic.reply(serialOf(socket), payload),
      endTurn: () => this.flush(),
      clientDatagram: () => undefined,
      clientTrain: () => false,
      backendTrain: () => false,
      refused: () => undefined,
      upstreamWritable: () => undefined,
      listenerWritable: () => undefined,
      lateSendFailure: () => undefined,
      timer: () => undefined,
    };
  }
}
