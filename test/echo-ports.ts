/** Ports in memory whose backends answer every datagram with itself, a turn later. Nothing is checked: for crowds. */
import type { Address } from '../core/address.ts';
import type { SocketId } from '../core/brand.ts';
import type { DataPlane } from '../core/data-plane.ts';
import type { DriverCapabilities, Ports } from '../core/ports.ts';
import { Pump } from '../core/pump.ts';
import { instant, type Instant } from '../core/time.ts';

interface Asked {
  readonly socket: SocketId;
  readonly payload: Uint8Array;
}

export class EchoPorts implements Ports {
  readonly capabilities: DriverCapabilities = { name: 'echo', batch: 64, localAddress: false };
  /** Upstream sockets that are open, and the most there were. */
  readonly open: Set<SocketId> = new Set();
  mostOpen = 0;
  readonly pump: Pump;
  private readonly onReply: (to: Address) => void;
  private clock: Instant = instant(0);
  private wake: Instant | undefined;
  private asked: Asked[] = [];

  constructor(plane: DataPlane, onReply: (to: Address) => void) {
    this.pump = new Pump(plane, this, () => undefined);
    this.onReply = onReply;
  }

  /** Everything that happens at this time: the timer if it is due, what arrives, and the answers to it. */
  turnAt(now: Instant, arrive: (pump: Pump) => void): void {
    this.clock = now;
    if (this.wake !== undefined && this.wake <= now) this.pump.timer();
    arrive(this.pump);
    this.pump.endTurn();
    for (const { socket, payload } of this.asked.splice(0)) {
      if (this.open.has(socket)) this.pump.backendDatagram(socket, payload);
    }
    this.pump.endTurn();
  }

  now(): Instant {
    return this.clock;
  }

  openListener(): undefined {
    return undefined;
  }

  closeListener(): void {}

  openUpstream(socket: SocketId): undefined {
    this.open.add(socket);
    this.mostOpen = Math.max(this.mostOpen, this.open.size);
    return undefined;
  }

  closeUpstream(socket: SocketId): void {
    this.open.delete(socket);
  }

  sendToBackend(socket: SocketId, _header: Uint8Array | undefined, payload: Uint8Array): void {
    this.asked.push({ socket, payload });
  }

  sendToClient(_listener: unknown, to: Address): void {
    this.onReply(to);
  }

  watchUpstream(): void {}

  watchListener(): void {}

  flush(): void {}

  wakeAt(at: Instant | undefined): void {
    this.wake = at;
  }
}
