/**
 * One run of a world: from a seed, with actors, or from a script of what they did. Both are the same run: what actors draw is
 * theirs alone, and they act before the events of an instant.
 */
import { after, microseconds, type Duration, type Instant } from '../../core/time.ts';
import { Digest } from '../digest.ts';
import { runTasks, RunFailure } from '../executor.ts';
import { unreachable, type Observer, type Property, type Violation } from '../properties.ts';
import { seededStreams, type Streams } from '../random.ts';
import type { Seed } from '../seed.ts';
import type { Channel } from '../task.ts';
import type { Script, ScriptEntry, WorldAction } from './actions.ts';
import { Actor, type Stage } from './actor.ts';
import { digestFacts } from './digest-facts.ts';
import { FactHub } from './facts.ts';
import type { Message } from './message.ts';
import type { Oracle, OracleKind } from './oracle.ts';
import type { Taps } from './own-trace.ts';
import { ORACLES } from './oracles/all-oracles.ts';
import { PHASES, type Phase, type WorldSpec } from './spec.ts';
import { Verdicts, ViolationFound } from './verdicts.ts';
import { pick, World } from './world.ts';
import type { WorldScenario } from './world-scenario.ts';

const THROWS: Property<'unreachable'> = unreachable('the proxy throws');

export interface WorldRunOptions {
  readonly observer: Observer;
  /** All of them unless given. */
  readonly oracles?: readonly OracleKind[];
  /** Violations of other properties do not end the run. */
  readonly only?: ReadonlySet<string>;
  /** Called before each action. */
  readonly onAction?: (action: WorldAction, at: Instant) => void;
  /** Called once the world is there, before anything happens in it. */
  readonly prepare?: (world: World) => void;
  /** Called with the hub before the world is made: for whoever wants every fact. */
  readonly listen?: (hub: FactHub) => void;
  /** Stand between the machines of every process and their pumps. */
  readonly taps?: Taps;
}

export interface WorldRunResult {
  readonly digest: string;
  readonly spec: WorldSpec;
  readonly script: Script;
  /** Events of the world, and actions. */
  readonly events: number;
  /** Virtual time that passed. */
  readonly duration: Duration;
  readonly violation: Violation | undefined;
  readonly detail: string | undefined;
}

/** Draws the world of a seed and lets its actors act. */
export async function runWorldSeed(
  scenario: WorldScenario,
  seed: Seed,
  options: WorldRunOptions,
): Promise<WorldRunResult> {
  const streams = seededStreams(seed);
  const { spec: planned, cast } = scenario.plan(streams);
  const spec = withOwnChance(planned, streams);
  const run = new WorldRun(spec, seed, options);
  await run.guardedAsync(async () => {
    const world = run.open();
    const sched = streams.sched.fork('actors');
    await runTasks({ seed, sched, clock: world.clock, surroundings: world }, async (context) => {
      for (const [name, body] of Object.entries(cast)) {
        const random = streams.workload.fork(name);
        context.spawn(name, () => body(new Actor(run, context, random)));
      }
      for (const phase of PHASES) {
        run.perform({ kind: 'Begin', phase });
        if (phase !== 'drain') await context.sleep(spec.phases[phase]);
      }
    });
    run.drain();
  });
  return run.result();
}

/** No two seeds share what their proxies draw, or how these lay out their tables. */
function withOwnChance(spec: WorldSpec, { config }: Streams): WorldSpec {
  const proxies = spec.proxies.map((proxy, number) => {
    const random = config.fork(`chance of proxy ${number}`);
    const [high, low] = [random.choose('high', 2 ** 32), random.choose('low', 2 ** 32)];
    return { ...proxy, randomSeed: { high, low } };
  });
  return { ...spec, proxies };
}

/** Does what a script says, in the world of its first state. */
export function runScript(
  spec: WorldSpec,
  script: Script,
  seed: Seed,
  options: WorldRunOptions,
): WorldRunResult {
  const run = new WorldRun(spec, seed, options);
  run.guarded(() => {
    const world = run.open();
    for (const { at, action } of script) {
      world.runTo(at);
      run.perform(action);
    }
    run.drain();
  });
  return run.result();
}

class WorldRun implements Stage {
  readonly spec: WorldSpec;
  phase: Phase = 'calm';
  readonly #seed: Seed;
  readonly #options: WorldRunOptions;
  readonly #verdicts: Verdicts;
  readonly #digest = new Digest();
  readonly #script: ScriptEntry[] = [];
  readonly #oracles: Oracle[] = [];
  #world: World | undefined;

  constructor(spec: WorldSpec, seed: Seed, options: WorldRunOptions) {
    this.spec = spec;
    this.#seed = seed;
    this.#options = options;
    options.observer.beginRun(seed);
    this.#verdicts = new Verdicts(options.observer, options.only);
  }

  /** Oracles first: they hear of the world from its beginning. */
  open(): World {
    const { oracles = ORACLES, listen, prepare, taps } = this.#options;
    const hub = new FactHub();
    hub.join(digestFacts(this.#digest));
    for (const kind of oracles) {
      const oracle = kind.begin(this.#verdicts, this.spec);
      this.#oracles.push(oracle);
      hub.join(oracle.hearings);
    }
    listen?.(hub);
    const world = new World(this.spec, this.#seed, hub, taps);
    this.#world = world;
    prepare?.(world);
    return world;
  }

  perform(action: WorldAction): void {
    const world = this.#open;
    const at = world.clock.now();
    this.#script.push({ at, action });
    this.#options.observer.step = this.#script.length;
    this.#options.onAction?.(action, at);
    if (action.kind === 'Begin') this.phase = action.phase;
    world.perform(action);
  }

  serialOf(client: number): number {
    return pick(this.#open.clients, client).serial;
  }

  listen(client: number, channel: Channel<Message | undefined>): void {
    const one = pick(this.#open.clients, client);
    const before = one.heard;
    one.heard = (heard) => {
      before(heard);
      if (heard.message?.kind === 'answer') channel.send(heard.message);
    };
  }

  /** Until every proxy has ended, or its time is over; then a little longer, for what is still under way. */
  drain(): void {
    const world = this.#open;
    const end = after(world.clock.now(), this.spec.phases.drain);
    for (let at = world.nextAt(); at !== undefined && at < end; at = world.nextAt()) world.step();
    if (world.clock.now() < end) world.runTo(end);
    world.count();
    for (const { finish } of this.#oracles.map((oracle) => ({
      finish: oracle.finish?.bind(oracle),
    })))
      finish?.(end);
  }

  guarded(body: () => void): void {
    try {
      body();
    } catch (error) {
      this.#caught(error);
    }
  }

  async guardedAsync(body: () => Promise<void>): Promise<void> {
    try {
      await body();
    } catch (error) {
      this.#caught(error);
    }
  }

  result(): WorldRunResult {
    const { observer, only } = this.#options;
    const world = this.#world;
    return {
      digest: this.#digest.print(),
      spec: this.spec,
      script: this.#script,
      events: (world?.steps ?? 0) + this.#script.length,
      duration: microseconds(world?.clock.now() ?? 0),
      violation: observer.violations.find(({ name }) => only === undefined || only.has(name)),
      detail: this.#verdicts.detail,
    };
  }

  /** A violation ends a run; whatever else is thrown is one. */
  #caught(thrown: unknown): void {
    const error = thrown instanceof RunFailure && thrown.kind === 'error' ? thrown.cause : thrown;
    if (error instanceof ViolationFound) return;
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    try {
      this.#verdicts.reach(THROWS, () => text);
    } catch {
      // It is a violation like any other.
    }
  }

  get #open(): World {
    if (this.#world === undefined) throw new Error('the world is not open');
    return this.#world;
  }
}
