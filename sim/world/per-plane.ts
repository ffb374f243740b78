/** What an oracle keeps of each data plane of each process, made when it is first asked for. */
import { present } from '../../core/assert.ts';
import type { ProcessNumber } from './facts.ts';
import type { WorldSpec } from './spec.ts';

export class PerPlane<Kept> {
  readonly #make: (process: ProcessNumber, plane: number) => Kept;
  readonly #processes = new Map<ProcessNumber, Kept[]>();

  constructor(make: (process: ProcessNumber, plane: number) => Kept) {
    this.#make = make;
  }

  of(process: ProcessNumber, plane: number): Kept {
    const known = this.#processes.get(process)?.[plane];
    return known ?? present(this.#upTo(process, plane)[plane], 'it was made');
  }

  /** A process is told to have so many: whoever hears of its control plane keeps something of each. */
  begin(process: ProcessNumber, planes: number): void {
    this.#upTo(process, planes - 1);
  }

  /** Of all planes of a process that were heard of: there is one at least. */
  all(process: ProcessNumber): readonly Kept[] {
    return this.#processes.get(process) ?? this.#upTo(process, 0);
  }

  delete(process: ProcessNumber): void {
    this.#processes.delete(process);
  }

  *values(): Iterable<Kept> {
    for (const planes of this.#processes.values()) yield* planes;
  }

  #upTo(process: ProcessNumber, plane: number): Kept[] {
    const planes = this.#processes.get(process) ?? [];
    this.#processes.set(process, planes);
    while (planes.length <= plane) planes.push(this.#make(process, planes.length));
    return planes;
  }
}

/** How many data planes a proxy has. */
export function planesOf({ proxies }: WorldSpec, proxy: number): number {
  return proxies[proxy]?.workers?.count ?? 1;
}
