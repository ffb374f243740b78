/** Worlds as text: the actions and what follows from them, for the verbose run of one seed and for the end of a failure. */
import { formatAddress, type Address } from '../../core/address.ts';
import type { ControlOutput } from '../../core/control-contract.ts';
import type { PlaneOutput } from '../../core/plane-contract.ts';
import type { Instant } from '../../core/time.ts';
import type { WorldAction } from '../index.ts';
import type { FactHub } from '../world/facts.ts';
import { seconds } from './narrate.ts';
import type { WorldListener } from './run-world-chunk.ts';

/** Tells a run, line by line: each action, and below it whatever else happens that is not a datagram. */
export class WorldNarrator implements WorldListener {
  private readonly write: (line: string) => void;

  constructor(write: (line: string) => void) {
    this.write = write;
  }

  action(action: WorldAction, number: number, at: Instant): void {
    this.write(`action ${number} ${describeWorldAction(action, at)}`);
  }

  join(hub: FactHub): void {
    const tell = (at: Instant, text: string): void => this.write(`  at ${seconds(at)} ${text}`);
    const tellWord = (at: Instant, process: number, word: string | undefined): void => {
      if (word !== undefined) tell(at, `process ${process}: ${word}`);
    };
    hub.join({
      FaultEnded: ({ action }, at) => tell(at, `ended: ${wordsOf(action)}`),
      Packet: (fate, at) => {
        if (fate.kind !== 'lost') return;
        const { src, dst } = fate.packet.datagram;
        const way = `${formatAddress(src)} to ${formatAddress(dst)}`;
        tell(at, `lost: ${way}, ${fate.cause} at ${fate.where}`);
      },
      Started: ({ process, proxy }, at) => tell(at, `process ${process} of proxy ${proxy} starts`),
      Crashed: ({ process }, at) => tell(at, `process ${process} crashes`),
      Exited: ({ process }, at) => tell(at, `process ${process} has ended`),
      DataOutput: ({ process, output }, at) => tellWord(at, process, ofDataPlane(output)),
      ControlOutput: ({ process, output }, at) => tellWord(at, process, ofControlPlane(output)),
    });
  }
}

export function describeWorldAction(action: WorldAction, at: Instant): string {
  return `at ${seconds(at)}: ${wordsOf(action)}`;
}

/** Datagrams are too many to be told; whoever wants them looks at what clients and backends hear. */
function ofDataPlane(output: PlaneOutput): string | undefined {
  switch (output.kind) {
    case 'SendToBackend':
    case 'SendToClient':
      return undefined;
    case 'Report':
      return `reports ${wordsOf(output.report)}`;
    default:
      return wordsOf(output);
  }
}

function ofControlPlane(output: ControlOutput): string | undefined {
  return output.kind === 'StartProbe' ? undefined : wordsOf(output);
}

/** A union's member by its kind and fields, whatever these are. */
function wordsOf(value: { readonly kind: string }): string {
  const { kind, ...rest } = value;
  return `${kind} ${fields(rest)}`.trimEnd();
}

function fields(value: object): string {
  return Object.entries(value)
    .map(([name, field]: [string, unknown]) => `${name} ${wordOf(field)}`)
    .join(', ');
}

function wordOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  if (isAddress(value)) return formatAddress(value);
  if (value instanceof Uint8Array) return `${value.length} bytes`;
  if (Array.isArray(value)) return `[${value.map(wordOf).join('; ')}]`;
  return `(${fields(value)})`;
}

function isAddress(value: object): value is Address {
  return 'family' in value && 'port' in value && 'scope' in value;
}
