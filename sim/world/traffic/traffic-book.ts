/**
 * What oracles of datagrams have in common: which line each socket is, what the plane took of what arrived, and what became of
 * it. A fold over facts, made once for all oracles of a run.
 */
import type { Address } from '../../../core/address.ts';
import type { PlaneInput, PlaneOutput } from '../../../core/plane-contract.ts';
import type { Hearings, ProcessNumber, ProcessTotals } from '../facts.ts';
import { PerPlane, planesOf } from '../per-plane.ts';
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
  counted?(totals: ProcessTotals, losses: Losses): void;
}

/** What ended in planes, as far as it can be told. */
export interface Losses {
  /** For certain, by counter. */
  readonly certain: Map<DropCounter | 'loopsRefused' | 'headersRefused', number>;
  /** Datagrams of which one of several counters has each. */
  readonly possible: Map<DropCounter, number>;
}

const BOOKS = new WeakMap<Verdicts, TrafficBook>();

/** Follows the traffic of a run: whoever asks first for its verdicts feeds the book, and all others share it. */
export function followTraffic(verdicts: Verdicts, spec: WorldSpec, watch: TrafficWatch): Hearings {
  const known = BOOKS.get(verdicts);
  const book = known ?? new TrafficBook(spec);
  book.watches.push(watch);
  BOOKS.set(verdicts, book);
  return known === undefined ? book.hearings : {};
}

class TrafficBook {
  readonly watches: TrafficWatch[] = [];
  readonly #spec: WorldSpec;
  /** The hosts of a process. */
  readonly #hosts = new Map<ProcessNumber, readonly Address[]>();
  readonly #planes = new PerPlane((process, plane) => {
    return new PlaneBook({ process, plane }, this.#hosts.get(process) ?? [], this.watches);
  });

  constructor(spec: WorldSpec) {
    this.#spec = spec;
  }

  get hearings(): Hearings {
    const planes = this.#planes;
    return {
      Started: ({ process, proxy }) => {
        this.#hosts.set(process, this.#spec.proxies[proxy]?.shape.addresses ?? []);
        planes.begin(process, planesOf(this.#spec, proxy));
      },
      DataInput: ({ process, plane, input, now }) => this.#of(process, plane)?.input(input, now),
      DataTimeout: ({ process, plane }) => this.#of(process, plane)?.timeout(),
      DataOutput: ({ process, plane, output }) => this.#of(process, plane)?.output(output),
      Counted: (totals) => this.#counted(totals),
    };
  }

  /** Only of processes that were told to start. */
  #of(process: ProcessNumber, plane: number): PlaneBook | undefined {
    return this.#hosts.has(process) ? this.#planes.of(process, plane) : undefined;
  }

  #counted(totals: ProcessTotals): void {
    const sum: Losses = { certain: new Map(), possible: new Map() };
    if (!this.#hosts.has(totals.process)) return;
    for (const book of this.#planes.all(totals.process)) {
      book.conclude();
      addTo(sum.certain, book.losses.certain);
      addTo(sum.possible, book.losses.possible);
    }
    for (const watch of this.watches) watch.counted?.(totals, sum);
  }
}

function addTo<Key>(sum: Map<Key, number>, counts: ReadonlyMap<Key, number>): void {
  for (const [key, count] of counts) sum.set(key, (sum.get(key) ?? 0) + count);
}
