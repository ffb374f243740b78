/**
 * From a failing run of a world to the smallest one that fails in the same way. Works on the script, never on the actors: a
 * shorter script is just another run. Greedy and without chance, in this order: chance off, actions removed, those whom nobody
 * needs taken out, parameters made plain, time gaps closed; until no single step makes it smaller. Phases begin as they did,
 * and do not count.
 */
import { instant } from '../../core/time.ts';
import { Observer, type Violation } from '../properties.ts';
import type { Seed } from '../seed.ts';
import type { Script, ScriptEntry } from './actions.ts';
import { FAULTLESS } from './faults.ts';
import { runScript, runWorldSeed } from './run-world.ts';
import { bisect, simplify } from './simplify.ts';
import type { WorldSpec } from './spec.ts';
import { smallerWorlds } from './unused.ts';
import type { WorldRecording } from './world-replay.ts';
import type { WorldScenario } from './world-scenario.ts';
import { ENTRY, SPEC } from './world-shapes.ts';

/** When to stop even if smaller runs may exist: by work, not by time, so that the result is always the same. */
export interface WorldShrinkLimits {
  readonly runs: number;
  /** Events of all these runs: what takes the time. */
  readonly events: number;
}

export interface ShrunkWorld extends WorldRecording {
  /** Actions that are left, beginnings of phases not counted. */
  readonly actions: number;
  /** Runs it took. */
  readonly runs: number;
  /** False if a limit ended the search. When true, removing any one action loses the violation. */
  readonly isMinimal: boolean;
}

/** At most a minute; a usual failure takes a few seconds. */
export const WORLD_SHRINK_LIMITS: WorldShrinkLimits = { runs: 20_000, events: 2_500_000 };

/** The script of a seed up to its violation; undefined if the seed holds. */
export async function recordWorldSeed(
  scenario: WorldScenario,
  seed: Seed,
): Promise<WorldRecording | undefined> {
  const { spec, script, violation } = await runWorldSeed(scenario, seed, {
    observer: new Observer(),
  });
  return violation && { spec, script, seed, property: violation.name };
}

/** Records a seed and shrinks it; undefined if the seed holds. */
export async function shrinkWorldSeed(
  scenario: WorldScenario,
  seed: Seed,
  limits: WorldShrinkLimits = WORLD_SHRINK_LIMITS,
): Promise<ShrunkWorld | undefined> {
  const recording = await recordWorldSeed(scenario, seed);
  return recording && shrinkWorld(recording, limits);
}

/** The smallest run that still violates the same property first; undefined if the recording does not. */
export function shrinkWorld(
  recording: WorldRecording,
  limits: WorldShrinkLimits = WORLD_SHRINK_LIMITS,
): ShrunkWorld | undefined {
  const search = new Search(recording, limits);
  if (!search.fails(recording.spec, recording.script)) return undefined;
  search.turnChanceOff();
  do search.removeActions();
  while (search.makePlain());
  return search.result;
}

class Search {
  #spec: WorldSpec;
  #script: Script;
  readonly #seed: Seed;
  readonly #property: string;
  readonly #limits: WorldShrinkLimits;
  /** What was thrown at first, if that is the violation: another error is another bug. */
  #thrown: string | undefined;
  #runs = 0;
  #events = 0;
  #isCutShort = false;

  constructor({ spec, script, seed, property }: WorldRecording, limits: WorldShrinkLimits) {
    this.#spec = spec;
    this.#script = script;
    this.#seed = seed;
    this.#property = property;
    this.#limits = limits;
  }

  get result(): ShrunkWorld {
    const script = this.#script;
    return {
      spec: this.#spec,
      script,
      seed: this.#seed,
      property: this.#property,
      actions: removable(script).length,
      runs: this.#runs,
      isMinimal: !this.#isCutShort,
    };
  }

  /** Whether this run fails in the same way. If so it is the smallest so far, cut where it fails. */
  fails(spec: WorldSpec, script: Script): boolean {
    if (this.#runs >= this.#limits.runs || this.#events >= this.#limits.events) {
      this.#isCutShort = true;
      return false;
    }
    const { violation, events, thrown } = this.#attempt(spec, script);
    this.#runs += 1;
    this.#events += events;
    if (violation?.name !== this.#property) return false;
    this.#thrown ??= thrown;
    if (thrown !== this.#thrown) return false;
    this.#spec = spec;
    this.#script = script.slice(0, violation.step);
    return true;
  }

  /** While the run is still long: whatever of the network is drawn. */
  turnChanceOff(): void {
    const { link, nats, clientHosts } = this.#spec;
    const isCalm = this.fails({ ...this.#spec, link: FAULTLESS }, this.#script);
    const slow = { ...FAULTLESS, latency: link.latency };
    if (!isCalm) this.fails({ ...this.#spec, link: slow }, this.#script);
    if (nats.length === 0) return;
    const open = clientHosts.map(({ ips }) => ({ ips, nat: undefined }));
    this.fails({ ...this.#spec, nats: [], clientHosts: open }, this.#script);
  }

  /** Removes runs of actions, halves first and single ones last, until none can go. */
  removeActions(): void {
    for (let size = removable(this.#script).length >> 1; size > 1; size >>= 1)
      this.#removeEach(size);
    while (this.#removeEach(1));
  }

  /** Everything that makes the run plainer and not shorter. Says whether anything did. */
  makePlain(): boolean {
    const crowd = this.#takeOut();
    const gaps = this.#closeGaps();
    const actions = this.#simplifyActions();
    const spec = this.#simplifySpec();
    return crowd || gaps || actions || spec;
  }

  #removeEach(size: number): boolean {
    let removed = false;
    for (let start = 0; ;) {
      const places = removable(this.#script);
      if (start >= places.length) return removed;
      const gone = new Set(places.slice(start, start + size));
      const rest = this.#script.filter((_, place) => !gone.has(place));
      if (this.fails(this.#spec, rest)) removed = true;
      else start += size;
    }
  }

  #takeOut(): boolean {
    const before = this.#spec;
    const now = (): { spec: WorldSpec; script: Script } => ({
      spec: this.#spec,
      script: this.#script,
    });
    for (const { spec, script } of smallerWorlds(now)) {
      if (headcount(spec) < headcount(this.#spec)) this.fails(spec, script);
    }
    return headcount(this.#spec) < headcount(before);
  }

  /** Every wait as short as the violation allows; what comes after it comes so much earlier. */
  #closeGaps(): boolean {
    const total = lengthOf(this.#script);
    for (let place = 0; place < this.#script.length; place += 1) {
      const gap = gapBefore(this.#script, place);
      if (gap === 0) continue;
      const fails = (length: number): boolean =>
        this.fails(this.#spec, withGap(this.#script, place, length));
      if (!fails(0)) bisect(gap, fails);
    }
    return lengthOf(this.#script) < total;
  }

  #simplifyActions(): boolean {
    let moved = false;
    for (let place = 0; place < this.#script.length; place += 1) {
      const entry = this.#script[place];
      if (entry === undefined || entry.action.kind === 'Begin') continue;
      const keeps = (turned: ScriptEntry): boolean =>
        turned.at === this.#script[place]?.at &&
        this.fails(this.#spec, this.#script.with(place, turned));
      if (simplify(entry, ENTRY, keeps, true).moved) moved = true;
    }
    return moved;
  }

  #simplifySpec(): boolean {
    const keeps = (spec: WorldSpec): boolean => this.fails(spec, this.#script);
    return simplify(this.#spec, SPEC, keeps, false).moved;
  }

  /** A world that cannot even be made fails in no way of interest. */
  #attempt(spec: WorldSpec, script: Script): Attempt {
    try {
      const options = { observer: new Observer() };
      const { violation, events, detail } = runScript(spec, script, this.#seed, options);
      const [first] = violation?.kind === 'unreachable' ? (detail ?? '').split('\n') : [];
      return { violation, events, thrown: first };
    } catch {
      return { violation: undefined, events: 0, thrown: undefined };
    }
  }
}

interface Attempt {
  readonly violation: Violation | undefined;
  readonly events: number;
  /** The first line of it. */
  readonly thrown: string | undefined;
}

/** Places of actions that may go: a phase that never begins is another story. */
function removable(script: Script): number[] {
  return [...script.keys()].filter((place) => script[place]?.action.kind !== 'Begin');
}

function headcount({ clients, clientHosts, backends, proxies }: WorldSpec): number {
  return clients.length + clientHosts.length + backends.length + proxies.length;
}

function lengthOf(script: Script): number {
  return script.at(-1)?.at ?? 0;
}

function gapBefore(script: Script, place: number): number {
  return (script[place]?.at ?? 0) - (script[place - 1]?.at ?? 0);
}

function withGap(script: Script, place: number, gap: number): Script {
  const sooner = gapBefore(script, place) - gap;
  return script.map((entry, index) =>
    index < place ? entry : { ...entry, at: instant(entry.at - sooner) },
  );
}
