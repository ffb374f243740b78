/**
 * What the kernel dropped before this process saw it, from /proc/net/udp and udp6: one line for each socket of the host. With
 * a hundred thousand flows that is many megabytes, so it is read in pieces, off the event loop, and a line is taken apart only
 * if it may be a listener's.
 */
import { open } from 'node:fs/promises';
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

const FILES = ['/proc/net/udp', '/proc/net/udp6'] as const;
const CHUNK_BYTES = 65_536;
/** The state of a socket that is connected to nobody (TCP_CLOSE); those of flows are 01. */
const UNCONNECTED = Buffer.from(':0000 07 ');
const NEWLINE = 0x0a;

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

  constructor(files: readonly string[] = FILES) {
    this.files = files;
  }

  /** Reads anew. Where the kernel does not tell, what is known stays. */
  async read(
    sockets: readonly ListenerSocketName[],
  ): Promise<ReadonlyMap<string, Readonly<KernelFigures>>> {
    const found = new Map<number, KernelFigures>();
    for (const file of this.files)
      await scan(file, new Map(sockets.map((s) => [s.inode, s])), found);
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
}

async function scan(
  file: string,
  wanted: ReadonlyMap<number, ListenerSocketName>,
  found: Map<number, KernelFigures>,
): Promise<void> {
  const handle = await open(file).catch(() => undefined);
  if (handle === undefined) return;
  try {
    const buffer = Buffer.alloc(CHUNK_BYTES);
    let kept = 0;
    for (;;) {
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
