/** What one run of a world adds to the counts of its scenario. */
import type { ListenerCounters } from '../../core/metrics.ts';
import type { Hearings, ProcessNumber } from '../world/facts.ts';
import { COUNTED, type Counts } from './result.ts';

export class WorldTally {
  private readonly actions: Record<string, number> = {};
  /** What each process has counted when it told of it last. */
  private readonly processes = new Map<ProcessNumber, Readonly<ListenerCounters>>();

  readonly hearings: Hearings = {
    Acted: ({ action }) => (this.actions[action.kind] = (this.actions[action.kind] ?? 0) + 1),
    Counted: ({ process, counters }) => this.processes.set(process, counters),
  };

  counts(): { readonly actions: Counts; readonly drops: Counts; readonly closes: Counts } {
    const { world } = COUNTED;
    return {
      actions: Object.fromEntries(world.actions.map((kind) => [kind, this.actions[kind] ?? 0])),
      drops: this.sums(world.drops),
      closes: this.sums(world.closes),
    };
  }

  private sums(names: readonly string[]): Counts {
    return Object.fromEntries(names.map((name) => [name, this.sum(name)]));
  }

  private sum(name: string): number {
    let sum = 0;
    for (const counters of this.processes.values()) {
      const counts: Counts = { ...counters };
      sum += counts[name] ?? 0;
    }
    return sum;
  }
}
