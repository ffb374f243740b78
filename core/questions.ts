/**
 * What operators ask that is not answered within the call: live flows are known to data planes only, and a dry run takes its
 * time. Each question is answered once.
 */
import { present } from './assert.ts';
import type { RequestId } from './brand.ts';
import { refused, type Answer, type ConfigCommand, type Refused, type Reply } from './commands.ts';
import type { Config } from './config.ts';
import { applyCommands, type ControlState } from './control-state.ts';
import type { Directive, Report } from './directives.ts';
import type { FlowCount, FlowQuery } from './flow-commands.ts';
import { OutputQueue } from './output-queue.ts';
import { evenKeys, PreviewJob, type Previewed, type PreviewOptions } from './preview.ts';
import { reconcileState } from './reconcile.ts';
import type { Hash64 } from './hash.ts';
import type { Instant } from './time.ts';

export type QuestionsOutput =
  | Extract<Directive, { kind: 'Query' }>
  | { readonly kind: 'Reply'; readonly request: RequestId; readonly reply: Reply };

export interface PreviewWake {
  readonly at: Instant;
  readonly reason: 'preview';
}

/** A dry run that waits to know which flows there are. */
type PreviewQuestion = Pick<PreviewOptions, 'before' | 'after'> & {
  /** What it would come to. */
  readonly commands: readonly ConfigCommand[];
};

/** Of one turn: a millisecond or so. */
const PREVIEW_STEPS: number = 1 << 17;

interface Running {
  readonly request: RequestId;
  readonly commands: readonly ConfigCommand[];
  readonly job: PreviewJob;
}

/** After each input, every output is polled before the next input. */
export class Questions {
  private readonly placementSeed: Hash64;
  private readonly known: PreviewOptions['known'];
  private readonly outputs = new OutputQueue<QuestionsOutput>();
  /** Dry runs that wait for a count of flows. */
  private readonly waiting = new Map<RequestId, PreviewQuestion>();
  /** One after the other. */
  private readonly running: Running[] = [];
  private wake: Instant | undefined;

  /** `known`: what is known of a backend at the moment. */
  constructor(placementSeed: Hash64, known: PreviewOptions['known']) {
    this.placementSeed = placementSeed;
    this.known = known;
  }

  /** For the data plane. */
  ask(request: RequestId, query: FlowQuery): undefined {
    this.outputs.push({ kind: 'Query', request, query });
  }

  /** A dry run of `config` over `state`; refused where the change would be. */
  preview(request: RequestId, state: ControlState, config: Config): Refused | undefined {
    const commands = reconcileState(state, config);
    const applied = applyCommands(state, commands);
    if (!applied.ok) return applied;
    const [before, after] = [activeOf(state), activeOf(applied.state)];
    this.waiting.set(request, { commands, before, after });
    return this.ask(request, { kind: 'CountFlows' });
  }

  /** The data plane's word, of the configuration with this generation. */
  answered(
    { request, answer }: Extract<Report, { kind: 'Answered' }>,
    generation: number,
    now: Instant,
  ): void {
    if (answer.kind === 'NotFound') return this.reply(request, refused('NotFound', answer.message));
    if (answer.kind === 'FlowCounts') return this.begin(request, answer.counts, now);
    const changed = answer.kind === 'Killed';
    return this.reply(request, { ok: true, changed, generation, answer });
  }

  /** Goes on with dry runs. */
  handleTimeout(generation: number, now: Instant): void {
    const [first] = this.running;
    if (first === undefined) return;
    this.wake = now;
    if (!first.job.advance(PREVIEW_STEPS)) return;
    this.running.shift();
    if (this.running.length === 0) this.wake = undefined;
    const { request, commands, job } = first;
    const answer: Answer = { kind: 'Previewed', preview: job.result(), commands };
    this.reply(request, { ok: true, changed: false, generation, answer });
  }

  pollOutput(): QuestionsOutput | undefined {
    return this.outputs.poll();
  }

  nextWake(): PreviewWake | undefined {
    return this.wake === undefined ? undefined : { at: this.wake, reason: 'preview' };
  }

  private begin(request: RequestId, counts: readonly FlowCount[], now: Instant): void {
    const { commands, ...question } = present(this.waiting.get(request), 'a dry run asked for it');
    this.waiting.delete(request);
    const { placementSeed, known } = this;
    const job = new PreviewJob({ ...question, known, counts, placementSeed, keys: evenKeys() });
    this.running.push({ request, commands, job });
    this.wake = now;
  }

  private reply(request: RequestId, reply: Reply): void {
    this.outputs.push({ kind: 'Reply', request, reply });
  }
}

/** Listeners that are closed serve nobody. */
function activeOf({ listeners, clusters }: ControlState): Previewed {
  const active = [...listeners.values()].filter((one) => one.active);
  return { listeners: active.map(({ config }) => config), clusters: [...clusters.values()] };
}
