/** What the kernel tells of processes and their UDP sockets, in /proc. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Bytes of memory that are there. */
export function residentMemory(pid: number): number {
  const kilobytes = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kilobytes ?? Number.NaN) * 1_024;
}

/** What the open descriptors of a process lead to: `socket:[4711]` and so on. */
export function descriptorsOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
    } catch {
      // Closed since.
      return [];
    }
  });
}

/** Datagrams that found no room at a UDP socket, by inode. */
type DropTable = ReadonlyMap<string, number>;

export function readDropTable(text: string = readFileSync('/proc/net/udp', 'utf8')): DropTable {
  const rows = text.trim().split('\n').slice(1);
  return new Map(
    rows.map((row) => {
      const words = row.trim().split(/\s+/);
      return [words[9] ?? '', Number(words[12])];
    }),
  );
}

/** What the kernel dropped at all UDP sockets of some processes: asked often enough, those included that are closed by now. */
export class DropLedger {
  private readonly byInode = new Map<string, number>();

  /** Takes down what is so far. */
  look(pids: readonly number[]): void {
    const table = readDropTable();
    for (const pid of pids) {
      for (const target of descriptorsOf(pid)) {
        const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? '';
        const drops = table.get(inode);
        if (drops !== undefined) this.byInode.set(inode, drops);
      }
    }
  }

  get total(): number {
    return [...this.byInode.values()].reduce((sum, one) => sum + one, 0);
  }
}
