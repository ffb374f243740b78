/** As determinism.ts, for worlds: the digests of everything that happened until each action, and at the end. */
import { printSeed, seedPlus, type Seed, type WorldScenario } from '../index.ts';
import { Digest } from '../digest.ts';
import { Observer } from '../properties.ts';
import { digestFacts } from '../world/digest-facts.ts';
import type { FactHub } from '../world/facts.ts';
import { runWorldSeed } from '../world/run-world.ts';
import { firstDifference, freshDigests, type Difference } from './determinism.ts';

/** The digest before each action. */
export class ActionLog {
  readonly digests: string[] = [];

  /** Begins to listen: of one world only. */
  readonly join = (hub: FactHub): void => {
    const digest = new Digest();
    hub.join(digestFacts(digest));
    hub.join({ Acted: () => void this.digests.push(digest.print()) });
  };
}

/** Runs a seed for its digests alone. */
export async function worldDigests(
  scenario: WorldScenario,
  seed: Seed,
): Promise<readonly string[]> {
  const log = new ActionLog();
  try {
    const options = { observer: new Observer(), listen: log.join };
    const { digest } = await runWorldSeed(scenario, seed, options);
    log.digests.push(digest);
  } catch (error) {
    log.digests.push(`threw ${String(error)}`);
  }
  return log.digests;
}

/** Repeats a run whose digests are known, after a run of another seed. `fresh`: in a new process as well. */
export async function repeatWorld(
  scenario: WorldScenario,
  seed: Seed,
  known: readonly string[],
  fresh: boolean,
): Promise<Difference | undefined> {
  await worldDigests(scenario, seedPlus(seed, 1));
  const again = await worldDigests(scenario, seed);
  return (
    firstDifference(known, again, 'after another seed', 'action') ??
    (fresh
      ? firstDifference(
          known,
          freshDigests([scenario.name, printSeed(seed)]),
          'in a fresh process',
          'action',
        )
      : undefined)
  );
}
