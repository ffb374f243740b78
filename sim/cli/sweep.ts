/**
 * Spreads the chunks of a plan over worker threads and joins what comes back in the order of the plan, so that nothing of the
 * result depends on how many workers there were and which of them was first.
 */
import { Worker } from 'node:worker_threads';
import { chunksOf, legsOf, seedAt, type Chunk, type Plan } from './plan.ts';
import { repetitionOf, type Check } from './check.ts';
import { emptyLeg, mergeLegs, WORKER_DIED, type LegResult } from './result.ts';
import type { ChunkResult, ChunkTask } from './run-chunk.ts';
import type { WorkerSetup } from './worker.ts';

export type Ending = 'complete' | 'bail' | 'interrupted';

export interface SweepResult {
  readonly legs: readonly LegResult[];
  readonly ending: Ending;
  /** Seconds that its threads took, by scenario. */
  readonly threads: Readonly<Record<string, number>>;
}

export interface SweepOptions {
  readonly jobs: number;
  readonly bail: boolean;
  readonly check: Check | undefined;
  /** Hears of each chunk as it arrives, in any order. */
  readonly onProgress?: (seeds: number, steps: number) => void;
  /** One line a seed, in the order of the plan. */
  readonly onLine?: (line: string) => void;
}

/** A chunk under way or waiting. */
interface Job {
  readonly chunk: Chunk;
  /** What is known of it already: seeds that killed a worker. */
  readonly known: LegResult;
}

/** A worker and what it is at. */
interface Member {
  readonly worker: Worker;
  readonly position: Int32Array;
  job: Job | undefined;
}

export class Sweep {
  private readonly plan: Plan;
  private readonly options: SweepOptions;
  private readonly legs: LegResult[];
  private readonly chunks: Generator<Chunk, void>;
  private readonly members = new Set<Member>();
  /** Arrived, but not yet their turn. */
  private readonly early = new Map<
    number,
    { readonly leg: number; readonly result: ChunkResult }
  >();
  private readonly threads: Record<string, number>;
  private nextOrder = 0;
  private ending: Ending = 'complete';
  /** No more chunks are handed out. */
  private stopping = false;
  /** With `bail`, what lies behind the first failure does not count: it would depend on the number of workers. */
  private closed = false;
  private finish: (result: SweepResult) => void = () => undefined;
  private fail: (error: Error) => void = () => undefined;

  constructor(plan: Plan, options: SweepOptions) {
    this.plan = plan;
    this.options = options;
    this.legs = legsOf(plan).map(({ scenario }) => emptyLeg(scenario.name));
    this.threads = Object.fromEntries(this.legs.map(({ scenario }) => [scenario, 0]));
    this.chunks = chunksOf(plan);
  }

  /** Runs it all. Rejects only when workers cannot work at all. */
  run(): Promise<SweepResult> {
    return new Promise((resolve, reject) => {
      this.finish = resolve;
      this.fail = reject;
      for (let started = 0; started < this.options.jobs; started += 1) {
        const job = this.nextJob();
        if (job === undefined) break;
        this.launch(job);
      }
      this.endIfDone();
    });
  }

  /** Once: waits for the chunks under way and keeps them. Twice: drops them. */
  interrupt(): void {
    const again = this.ending === 'interrupted';
    this.ending = 'interrupted';
    this.stopping = true;
    if (!again) return;
    for (const member of this.members) {
      member.job = undefined;
      void member.worker.terminate();
    }
  }

  private launch(job: Job): void {
    const position = new Int32Array(new SharedArrayBuffer(4)).fill(-1);
    const setup: WorkerSetup = { position };
    const worker = new Worker(new URL('worker.js', import.meta.url), { workerData: setup });
    const member: Member = { worker, position, job: undefined };
    let lastWords = '';
    worker.on('message', (result: ChunkResult) => this.arrived(member, result));
    worker.on(
      'error',
      (error) => (lastWords = error instanceof Error ? error.message : 'an error'),
    );
    worker.on('exit', (code) => this.exited(member, `exit code ${code} ${lastWords}`.trimEnd()));
    this.members.add(member);
    this.assign(member, job);
  }

  private assign(member: Member, job: Job): void {
    member.job = job;
    Atomics.store(member.position, 0, -1);
    // oxlint-disable-next-line require-post-message-target-origin -- a thread has no origin
    member.worker.postMessage(this.taskOf(job.chunk));
  }

  private taskOf({ leg, offsets }: Chunk): ChunkTask {
    const { plan, options } = this;
    return {
      scenario: this.legs[leg]?.scenario ?? '',
      steps: plan.steps,
      bail: options.bail,
      seeds: offsets.map((offset) => ({
        seed: seedAt(plan, offset),
        repetition: repetitionOf(options.check, offset),
      })),
    };
  }

  private arrived(member: Member, result: ChunkResult): void {
    const { job } = member;
    if (job === undefined) return undefined;
    this.take(job, result);
    const next = this.nextJob();
    if (next !== undefined) return this.assign(member, next);
    member.job = undefined;
    void member.worker.terminate();
  }

  /** Either its work is done, or it died of a seed: then that seed failed, and somebody else does the rest. */
  private exited(member: Member, how: string): void {
    this.members.delete(member);
    const { job } = member;
    if (job !== undefined) {
      const place = Atomics.load(member.position, 0);
      const offset = job.chunk.offsets[place];
      if (offset === undefined) return this.fail(new Error(`a worker did not start: ${how}`));
      this.resume(this.withoutKiller(job, offset, how));
    }
    this.endIfDone();
  }

  private withoutKiller({ chunk, known }: Job, killer: number, how: string): Job {
    const { scenario } = known;
    const seed = seedAt(this.plan, killer);
    const failure = { property: WORKER_DIED, scenario, seed, step: 0, detail: how, actions: [] };
    const died = { ...emptyLeg(scenario), seeds: 1, failed: 1, failures: [failure] };
    const offsets = chunk.offsets.filter((offset) =>
      this.options.bail ? offset < killer : offset !== killer,
    );
    return { chunk: { ...chunk, offsets }, known: mergeLegs(known, died) };
  }

  private resume(job: Job): void {
    if (job.chunk.offsets.length > 0) return this.launch(job);
    this.take(job, { leg: emptyLeg(job.known.scenario), lines: [], seconds: 0 });
    const next = this.nextJob();
    if (next !== undefined) this.launch(next);
  }

  private nextJob(): Job | undefined {
    if (this.stopping) return undefined;
    const { value } = this.chunks.next();
    if (value === undefined) return undefined;
    return { chunk: value, known: emptyLeg(this.legs[value.leg]?.scenario ?? '') };
  }

  private take({ chunk, known }: Job, result: ChunkResult): void {
    const leg = mergeLegs(result.leg, known);
    this.threads[leg.scenario] = (this.threads[leg.scenario] ?? 0) + result.seconds;
    this.options.onProgress?.(leg.seeds, leg.steps);
    if (this.options.bail && leg.failed > 0) this.stopping = true;
    this.early.set(chunk.order, { leg: chunk.leg, result: { ...result, leg } });
    for (let due = this.early.get(this.nextOrder); due; due = this.early.get(this.nextOrder)) {
      this.early.delete(this.nextOrder);
      this.nextOrder += 1;
      this.join(due.leg, due.result);
    }
  }

  private join(index: number, { leg, lines }: ChunkResult): void {
    if (this.closed) return;
    this.legs[index] = mergeLegs(this.legs[index] ?? emptyLeg(leg.scenario), leg);
    for (const line of lines) this.options.onLine?.(line);
    if (!this.options.bail || leg.failed === 0) return;
    this.closed = true;
    if (this.ending === 'complete') this.ending = 'bail';
  }

  private endIfDone(): void {
    if (this.members.size > 0) return;
    const left = [...this.early].sort(([one], [other]) => one - other);
    for (const [, { leg, result }] of left) this.join(leg, result);
    this.finish({ legs: this.legs, ending: this.ending, threads: this.threads });
  }
}
