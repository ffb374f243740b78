/**
 * What the kernel dropped before this process saw it, from /proc/net/udp and udp6: one line for each socket of the host. With
 * a hundred thousand flows that is many megabytes, so it is read in pieces, off the event loop, and a line is taken apart only
 * if it may be a listener's. The kernel finds each piece by counting sockets from the first one, so that twice as many take
 * four times as long (measured: 9,000 take 0.1 s): whoever asks gets what is known, and it is read anew as often as is cheap.
 */
import { open } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { formatAddress, LastingSums, type Address } from '../../core/index.ts';

/** A listener's socket, as the kernel names it. */
export interface ListenerSocketName {
  readonly address: Address;
  /** The port it is bound to. */
  readonly port: number;
  readonly inode: number;
}

export interface KernelFigures {
  drops: number;
  /** A gauge: of sockets that are open. */
  queuedBytes: number;
}

/** A read rests this many times as long as it took. */
const REST = 9;
/** Whoever asks waits this long for a read, and then takes what is known. */
const PATIENCE_MILLISECONDS = 200;

type Figures = ReadonlyMap<string, Readonly<KernelFigures>>;

const FILES = ['/proc/net/udp', '/proc/net/udp6'] as const;
const CHUNK_BYTES = 65_536;
/** The state of a socket that is connected to nobody (TCP_CLOSE); those of flows are 01. */
const UNCONNECTED = Buffer.from(':0000 07 ');
const NEWLINE = 0x0a;

/** Reads for whoever asks, with a tenth of a thread at most. */
export class KernelWatch {
  private readonly drops: Pick<KernelDrops, 'read' | 'close'>;
  private readonly sockets: () => readonly ListenerSocketName[];
  private readonly clock: () => number;
  private known: Figures = new Map();
  private reading: Promise<void> | undefined;
  private dueAt = 0;

  /** `clock` is in milliseconds. */
  constructor(
    sockets: () => readonly ListenerSocketName[],
    drops: Pick<KernelDrops, 'read' | 'close'> = new KernelDrops(),
    clock: () => number = () => performance.now(),
  ) {
    this.sockets = sockets;
    this.drops = drops;
    this.clock = clock;
  }

  /** As last read, which is now unless a read takes long. */
  async figures(): Promise<Figures> {
    if (this.reading === undefined && this.clock() >= this.dueAt) this.reading = this.read();
    if (this.reading !== undefined) {
      await Promise.race([this.reading, wait(PATIENCE_MILLISECONDS, undefined, { ref: false })]);
    }
    return this.known;
  }

  /** A read that is under way ends. */
  close(): void {
    this.drops.close();
  }

  private async read(): Promise<void> {
    const began = this.clock();
    this.known = await this.drops.read(this.sockets());
    const ended = this.clock();
    this.dueAt = ended + (ended - began) * REST;
    this.reading = undefined;
  }
}

/** The kernel counts for each socket from zero; here they are sums by address that only grow. */
export class KernelDrops {
  private readonly files: readonly string[];
  private readonly lasting = new LastingSums<KernelFigures>(
    () => ({ drops: 0, queuedBytes: 0 }),
    (sum, { drops, queuedBytes }) => {
      sum.drops += drops;
      sum.queuedBytes += queuedBytes;
    },
  );
  /** By inode, as last read. */
  private live = new Map<number, { name: string; figures: KernelFigures }>();
  private isClosed = false;

  constructor(files: readonly string[] = FILES) {
    this.files = files;
  }

  /** Reads anew. Where the kernel does not tell, what is known stays. */
  async read(sockets: readonly ListenerSocketName[]): Promise<Figures> {
    const found = new Map<number, KernelFigures>();
    const wanted = new Map(sockets.map((socket) => [socket.inode, socket]));
    for (const file of this.files) await this.scan(file, wanted, found);
    const live = new Map<number, { name: string; figures: KernelFigures }>();
    for (const { address, inode } of sockets) {
      const name = formatAddress(address);
      const figures = found.get(inode) ?? this.live.get(inode)?.figures;
      this.lasting.begin(name);
      if (figures !== undefined) live.set(inode, { name, figures });
    }
    for (const [inode, { name, figures }] of this.live) {
      if (!live.has(inode)) this.lasting.keep(name, { ...figures, queuedBytes: 0 });
    }
    this.live = live;
    return this.lasting.including(
      [...live.values()].map(({ name, figures }) => [name, figures] as const),
    );
  }

  /** A read that is under way ends, and so does each later one. */
  close(): void {
    this.isClosed = true;
  }

  /** Until every socket is found: the rest of the file is about others. */
  private async scan(
    file: string,
    wanted: ReadonlyMap<number, ListenerSocketName>,
    found: Map<number, KernelFigures>,
  ): Promise<void> {
    const handle = await open(file).catch(() => undefined);
    if (handle === undefined) return;
    try {
      const buffer = Buffer.alloc(CHUNK_BYTES);
      let kept = 0;
      while (found.size < wanted.size && !this.isClosed) {
        const { bytesRead } = await handle.read(buffer, kept, CHUNK_BYTES - kept, null);
        if (bytesRead === 0) return;
        const end = kept + bytesRead;
        const whole = buffer.lastIndexOf(NEWLINE, end - 1) + 1;
        takeLines(buffer.subarray(0, whole), wanted, found);
        // Lines have about 130 bytes: what is left of one never fills the buffer.
        buffer.copy(buffer, 0, whole, end);
        kept = end - whole;
      }
    } catch {
      // The kernel stopped telling: what was read so far counts.
    } finally {
      await handle.close();
    }
  }
}

function takeLines(
  lines: Buffer,
  wanted: ReadonlyMap<number, ListenerSocketName>,
  found: Map<number, KernelFigures>,
): void {
  for (let at = lines.indexOf(UNCONNECTED); at >= 0; at = lines.indexOf(UNCONNECTED, at + 1)) {
    const start = lines.lastIndexOf(NEWLINE, at) + 1;
    const end = lines.indexOf(NEWLINE, at);
    const fields = lines
      .toString('latin1', start, end < 0 ? lines.length : end)
      .trim()
      .split(/\s+/);
    const [, local = '', , , queues = ''] = fields;
    const socket = wanted.get(Number(fields[9]));
    if (socket === undefined || parseInt(local.split(':')[1] ?? '', 16) !== socket.port) continue;
    found.set(socket.inode, {
      drops: Number(fields[12] ?? 0),
      queuedBytes: parseInt(queues.split(':')[1] ?? '0', 16),
    });
  }
}
