/**
 * The open upstream sockets of a driver by their ids. Ids count up, so most live ones differ in their last bits: those say
 * where a line stands, and one look finds it. A map has the few that another has displaced; to ask it alone cost a hundredth
 * of a round trip among ten thousand flows (measured).
 */
import { serialOf, type SocketId } from '../../core/index.ts';
import type { UpstreamLine } from './channel.ts';

/** Places, a power of two: as many as there are flows in most proxies. */
const PLACES = 16_384;

export class LineTable {
  private readonly all = new Map<SocketId, UpstreamLine>();
  private readonly places: (UpstreamLine | undefined)[] = Array.from({ length: PLACES });

  get size(): number {
    return this.all.size;
  }

  get(id: SocketId): UpstreamLine | undefined {
    const line = this.places[placeOf(id)];
    return line?.id === id ? line : this.all.get(id);
  }

  add(line: UpstreamLine): void {
    this.all.set(line.id, line);
    this.places[placeOf(line.id)] = line;
  }

  /** The line, which is no longer there. */
  take(id: SocketId): UpstreamLine | undefined {
    const line = this.all.get(id);
    const place = placeOf(id);
    this.all.delete(id);
    if (this.places[place]?.id === id) this.places[place] = undefined;
    return line;
  }
}

function placeOf(id: SocketId): number {
  return serialOf(id) & (PLACES - 1);
}
