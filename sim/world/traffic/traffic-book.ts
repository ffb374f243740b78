/**
 * What oracles of datagrams have in common: which line each socket is, what the plane took of what arrived, and what became of
 * it. A fold over facts, made once for all oracles of a run.
 */
import type { PlaneInput, PlaneOutput } from '../../../core/plane-contract.ts';
import type { Hearings, ProcessNumber, ProcessTotals } from '../facts.ts';
import type { WorldSpec } from '../spec.ts';
import type { Verdicts } from '../verdicts.ts';
import type { Expectation } from './expectation.ts';
import type { DropCounter, Line, Parcel } from './parcel.ts';
import { PlaneBook } from './plane-book.ts';

export type SendOutput = Extract<PlaneOutput, { kind: 'SendToBackend' | 'SendToClient' }>;

/** How a flow came to a new line: as a new one, away from its backend, or to another socket for the same. */
export type Opening = 'admitted' | 'moved' | 'renewed';

/** What is wrong with a send that is nobody's: it is not what arrived, a second time, or out of order; or another's. */
export type Astray = 'bytes' | 'twice' | 'line';

/** Who hears what the book makes of the facts. */
export interface TrafficWatch {
  /** Before it is in use. `from` is the line its flow had. */
  opened?(
    line: Line,
    how: Opening,
    from: Line | undefined,
    expected: Expectation | undefined,
  ): void;
  /** A parcel is handed to the kernel, perhaps again. */
  sent?(parcel: Parcel, output: SendOutput): void;
  /** Something was handed to the kernel that did not arrive, or not so. */
  astray?(output: SendOutput, why: Astray): void;
  /** A client datagram went on that should have been dropped. */
  spared?(expected: Expectation): void;
  /** A datagram did not go on, and nothing explains it. */
  vanished?(input: PlaneInput): void;
  counted?(totals: ProcessTotals, book: PlaneBook): void;
}

/** What ended in a plane, as far as it can be told. */
export interface Losses {
  /** For certain, by counter. */
  readonly certain: Map<DropCounter | 'loopsRefused' | 'headersRefused', number>;
  /** Datagrams of which one of several counters has each. */
  readonly possible: Map<DropCounter, number>;
}

const BOOKS = new WeakMap<Verdicts, TrafficBook>();

/** Follows the traffic of a run: whoever asks first for its verdicts feeds the book, and all others share it. */
export function followTraffic(
  verdicts: Verdicts,
  { proxies }: WorldSpec,
  watch: TrafficWatch,
): Hearings {
  const known = BOOKS.get(verdicts);
  const book = known ?? new TrafficBook(proxies);
  book.watches.push(watch);
  BOOKS.set(verdicts, book);
  return known === undefined ? book.hearings : {};
}

class TrafficBook {
  readonly watches: TrafficWatch[] = [];
  readonly #proxies: WorldSpec['proxies'];
  readonly #planes = new Map<ProcessNumber, PlaneBook>();

  constructor(proxies: WorldSpec['proxies']) {
    this.#proxies = proxies;
  }

  get hearings(): Hearings {
    const planes = this.#planes;
    return {
      Started: ({ process, proxy }) => {
        const hosts = this.#proxies[proxy]?.shape.addresses ?? [];
        planes.set(process, new PlaneBook(process, hosts, this.watches));
      },
      DataInput: ({ process, input, now }) => planes.get(process)?.input(input, now),
      DataTimeout: ({ process }) => planes.get(process)?.timeout(),
      DataOutput: ({ process, output }) => planes.get(process)?.output(output),
      Counted: (totals) => planes.get(totals.process)?.counted(totals),
    };
  }
}
