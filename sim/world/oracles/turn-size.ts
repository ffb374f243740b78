/**
 * What a data plane puts out does not depend on how its arrivals are cut into turns, as long as no send fails: a second one is
 * told the same, and after each datagram that its turn is over. It costs a data plane more, so few runs have it.
 *
 * A drain is left out, because it is over with the first turn that finds no flow; and while a Maglev table is filled in slices,
 * one a turn, no turn is ended that was not.
 */
import { DataPlane } from '../../../core/data-plane.ts';
import { addCounters, newCounters, type ListenerCounters } from '../../../core/metrics.ts';
import type { PlaneInput, PlaneOutput } from '../../../core/plane-contract.ts';
import { sameValue } from '../../../core/same-value.ts';
import type { Instant } from '../../../core/time.ts';
import { always, type Property } from '../../properties.ts';
import type { ProcessNumber, ProcessTotals } from '../facts.ts';
import type { OracleKind } from '../oracle.ts';
import { PerPlane, planesOf } from '../per-plane.ts';
import { planeOptionsOf } from '../proxy-process.ts';
import { pick } from '../world.ts';
import type { Verdicts } from '../verdicts.ts';

const ALIKE: Property<'always'> = always('outputs do not depend on the size of a turn');

export const TURN_SIZE: OracleKind = {
  name: 'turn-size',
  begin: (verdicts, spec) => {
    const started = new Map<ProcessNumber, number>();
    const shadows = new PerPlane((process, plane) => {
      const options = planeOptionsOf(pick(spec.proxies, started.get(process) ?? 0), plane);
      return new Shadow(process, new DataPlane(options), verdicts);
    });
    return {
      hearings: {
        Started: ({ process, proxy }) => {
          started.set(process, proxy);
          shadows.begin(process, planesOf(spec, proxy));
        },
        DataInput: ({ process, plane, input, now }) => shadows.of(process, plane).hear(input, now),
        DataTimeout: ({ process, plane, now }) => shadows.of(process, plane).wake(now),
        DataOutput: ({ process, plane, output }) => shadows.of(process, plane).compare(output),
        Counted: (totals) => compareCounts(shadows.all(totals.process), totals, verdicts),
        Crashed: ({ process }) => shadows.delete(process),
        Exited: ({ process }) => shadows.delete(process),
      },
    };
  },
};

class Shadow {
  readonly #process: ProcessNumber;
  readonly #plane: DataPlane;
  readonly #verdicts: Verdicts;
  /** What it said to the last input, and the other one is yet to say. */
  #said: PlaneOutput[] = [];
  #isOver = false;

  constructor(process: ProcessNumber, plane: DataPlane, verdicts: Verdicts) {
    this.#process = process;
    this.#plane = plane;
    this.#verdicts = verdicts;
  }

  hear(input: PlaneInput, now: Instant): void {
    this.#checkAllSaid();
    this.#isOver ||= isOfNoMatter(input);
    if (this.#isOver) return;
    this.#plane.handleInput(input, now);
    this.#poll();
    if (input.kind !== 'ClientArrived' && input.kind !== 'BackendArrived') return;
    if (this.#plane.pollTimeout()?.reason === 'maglev-build') return;
    this.#plane.handleInput({ kind: 'Flushed' }, now);
    this.#poll();
  }

  wake(now: Instant): void {
    this.#checkAllSaid();
    if (this.#isOver) return;
    this.#plane.handleTimeout(now);
    this.#poll();
  }

  compare(output: PlaneOutput): void {
    if (this.#isOver || output.kind === 'Report') return;
    const said = this.#said.shift();
    this.#verdicts.check(ALIKE, sameValue(said, output), () => {
      return `process ${this.#process} says ${output.kind}, and ${said?.kind ?? 'nothing'} in turns of one`;
    });
  }

  /** What it counts; undefined when nothing can be said of it any more. */
  get totals(): Readonly<ListenerCounters> | undefined {
    this.#checkAllSaid();
    return this.#isOver ? undefined : this.#plane.listeners.totals;
  }

  /** How often something is reported depends on turns. */
  #poll(): void {
    const plane = this.#plane;
    for (let output = plane.pollOutput(); output !== undefined; output = plane.pollOutput())
      if (output.kind !== 'Report') this.#said.push(output);
  }

  #checkAllSaid(): void {
    const [said] = this.#said;
    this.#verdicts.check(ALIKE, this.#isOver || said === undefined, () => {
      return `process ${this.#process} says nothing, and ${said?.kind} in turns of one`;
    });
  }
}

function compareCounts(
  shadows: readonly Shadow[],
  { process, counters }: ProcessTotals,
  verdicts: Verdicts,
): void {
  const sum = newCounters();
  for (const { totals } of shadows) {
    if (totals === undefined) return;
    addCounters(sum, totals);
  }
  verdicts.check(ALIKE, sameValue(sum, counters), () => {
    return `process ${process} counts ${JSON.stringify(counters)}, and ${JSON.stringify(sum)} in turns of one`;
  });
}

function isOfNoMatter(input: PlaneInput): boolean {
  if (input.kind === 'SendFailed') return true;
  if (input.kind !== 'Directed') return false;
  const { kind } = input.message.directive;
  return kind === 'Drain' || kind === 'Stop';
}
