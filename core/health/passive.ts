/**
 * Health of one cluster's backends as its traffic shows it: refusals from several flows, or no answers where other backends
 * answer. A suspected backend is ejected for a while that doubles each time; a probe is asked first where one could say that
 * the suspicion is wrong. It is never the last one available that is ejected, and never more than half of a cluster.
 */
import { formatAddress, type Address } from '../address.ts';
import { assert, present } from '../assert.ts';
import { OutputQueue } from '../output-queue.ts';
import { after, instant, microseconds, seconds, type Duration, type Instant } from '../time.ts';
import { ANSWER_BUCKET, AnswerEvidence, answerRatio } from './answer-evidence.ts';
import { DueQueue } from './due-queue.ts';
import type { ProbeResult } from './hysteresis.ts';
import type {
  PassiveEvidence,
  PassiveOutput,
  PassiveSettings,
  PassiveWake,
} from './passive-contract.ts';
import { REFUSALS_MIN, RefusalEvidence } from './refusal-evidence.ts';

/** Two probe intervals: a backend that restarts is back before the first ejection ends. */
export const EJECTION_BASE: Duration = seconds(10);

/** A backend that fails for hours is tried every five minutes, at the price of a handful of its flows. */
export const EJECTION_CAP: Duration = seconds(300);

/** One that served this long since it returned has its earlier ejections forgiven. */
export const EJECTION_FORGIVEN: Duration = seconds(300);

/** If more than half of a cluster looks ill, the eye is to blame as likely as the cluster. */
export const EJECTED_SHARE_MAX: number = 1 / 2;

/** After a suspicion that came to nothing its backend is left alone, so that a stream of refusals asks for few probes. */
export const SUSPICION_PAUSE: Duration = seconds(5);

type Stage = 'serving' | 'suspected' | 'ejected';

/** What is known of one backend: fixed memory. */
interface Subject {
  readonly slot: number;
  readonly address: Address;
  readonly refusals: RefusalEvidence;
  readonly answers: AnswerEvidence;
  /** As probes and operators see it. */
  available: boolean;
  stage: Stage;
  suspicion: PassiveEvidence | undefined;
  /** Ejections that are not forgiven. */
  ejections: number;
  returnedAt: Instant;
  pausedUntil: Instant;
}

/** One cluster's. After each input, every output is polled before the next input. */
export class PassiveHealth {
  private settings: PassiveSettings;
  private readonly outputs = new OutputQueue<PassiveOutput>();
  private readonly subjects: (Subject | undefined)[] = [];
  private readonly slots = new Map<string, number>();
  private readonly free: number[] = [];
  /** When an ejection ends, or the wait for a probe. */
  private readonly due = new DueQueue();
  /** When backends are compared next; undefined while there is nothing to compare. */
  private bucketEnd: Instant | undefined;
  private withheld = 0;
  private latest: Instant = instant(0);

  constructor(settings: PassiveSettings) {
    this.settings = settings;
  }

  /** All backends there are. One that stays keeps its slot, its evidence and its ejection; one that comes is available. */
  configure(settings: PassiveSettings, backends: readonly Address[], now: Instant): void {
    this.begin(now);
    if (settings.exchange !== this.settings.exchange) this.forgetAnswers();
    this.settings = settings;
    const wanted = new Map(backends.map((address) => [formatAddress(address), address]));
    for (const [key, slot] of this.slots) {
      if (!wanted.has(key)) this.leave(key, slot);
    }
    for (const [key, address] of wanted) {
      if (!this.slots.has(key)) this.enter(key, address);
    }
    this.rescue(now);
  }

  /** The number of a backend, its own until it is configured away. */
  slotOf(address: Address): number | undefined {
    return this.slots.get(formatAddress(address));
  }

  /** Whether probes and operators let this backend serve. What was seen of it while it did not is no evidence. */
  setAvailable(slot: number, available: boolean, now: Instant): void {
    this.begin(now);
    const subject = this.subject(slot);
    if (subject.available === available) return;
    subject.available = available;
    if (subject.stage !== 'ejected') this.dismiss(subject);
    this.rescue(now);
  }

  /** So many requests went to the backend; the caller decides what is a request. No effect on a one-way cluster. */
  forwarded(slot: number, count: number, now: Instant): void {
    if (this.settings.exchange !== 'request-response') return;
    this.subject(slot).answers.forwarded(count);
    this.bucketEnd ??= after(now, ANSWER_BUCKET);
  }

  /** So many datagrams came from the backend. Whoever answers is there, so its refusals are void. */
  answered(slot: number, count: number): void {
    const subject = this.subject(slot);
    if (this.settings.exchange === 'request-response') subject.answers.answered(count);
    if (!subject.refusals.isEmpty) subject.refusals.clear();
    if (subject.stage === 'suspected' && subject.suspicion?.kind === 'refusals') {
      this.dismiss(subject);
    }
  }

  /** A flow's socket heard a refusal from the backend. `flow` is any number that tells live flows apart. */
  refused(slot: number, flow: number, now: Instant): void {
    this.begin(now);
    const subject = this.subject(slot);
    if (!isWatched(subject, now)) return;
    subject.refusals.add(flow, now);
    if (!subject.refusals.suffices(now)) return;
    this.suspect(subject, { kind: 'refusals', refusals: REFUSALS_MIN }, now);
  }

  /** A probe of the backend ended: of one that is suspected it confirms the suspicion, unless it says up. */
  probed(slot: number, result: ProbeResult, now: Instant): void {
    this.begin(now);
    const subject = this.subject(slot);
    if (subject.stage !== 'suspected') return;
    if (result === 'up') this.pause(subject, now);
    else this.eject(subject, now);
  }

  handleTimeout(now: Instant): void {
    this.begin(now);
    for (;;) {
      const first = this.due.first();
      if (first === undefined || first.at > now) break;
      const subject = this.subject(first.number);
      if (subject.stage === 'ejected') this.readmit(subject, 'time-over', now);
      else this.eject(subject, now);
    }
    if (this.bucketEnd !== undefined && this.bucketEnd <= now) this.compare(now);
  }

  pollOutput(): PassiveOutput | undefined {
    return this.outputs.poll();
  }

  /** Never in the past once `handleTimeout` was called for it. */
  nextWake(): PassiveWake | undefined {
    const first = this.due.first();
    if (this.bucketEnd !== undefined && (first === undefined || this.bucketEnd < first.at)) {
      return { at: this.bucketEnd, reason: 'answers-compared' };
    }
    if (first === undefined) return undefined;
    const ejected = this.subject(first.number).stage === 'ejected';
    return { at: first.at, reason: ejected ? 'ejection-over' : 'confirmation-overdue' };
  }

  /** False for an address that is not one of the backends. */
  isEjected(address: Address): boolean {
    const slot = this.slotOf(address);
    return slot !== undefined && this.subject(slot).stage === 'ejected';
  }

  get ejectedCount(): number {
    return this.all().filter(({ stage }) => stage === 'ejected').length;
  }

  /** Suspicions that led to nothing because too few backends would have been left. */
  get withheldCount(): number {
    return this.withheld;
  }

  private begin(now: Instant): void {
    assert(this.outputs.pending === 0, 'every output is polled before the next input');
    assert(now >= this.latest, 'time does not go back');
    this.latest = now;
  }

  private enter(key: string, address: Address): void {
    const slot = this.free.pop() ?? this.subjects.length;
    this.slots.set(key, slot);
    this.subjects[slot] = {
      slot,
      address,
      refusals: new RefusalEvidence(),
      answers: new AnswerEvidence(),
      available: true,
      stage: 'serving',
      suspicion: undefined,
      ejections: 0,
      returnedAt: instant(0),
      pausedUntil: instant(0),
    };
  }

  private leave(key: string, slot: number): void {
    this.slots.delete(key);
    this.due.remove(slot);
    this.subjects[slot] = undefined;
    this.free.push(slot);
  }

  /** Compares all backends; then the window moves on, until it is empty. */
  private compare(now: Instant): void {
    const all = this.all();
    // One that is ejected shows as well as any other, by its old flows, that requests can be answered.
    const best = Math.max(0, ...all.map(({ answers }) => answerRatio(answers.tally()) ?? 0));
    let requestsLeft = 0;
    for (const subject of all) {
      const tally = subject.answers.tally();
      if (subject.answers.compare(best) && isWatched(subject, now)) {
        this.suspect(subject, { kind: 'answers', ...tally, bestRatio: best }, now);
      }
      subject.answers.turn();
      requestsLeft += subject.answers.tally().requests;
    }
    this.bucketEnd = requestsLeft === 0 ? undefined : after(now, ANSWER_BUCKET);
  }

  private suspect(subject: Subject, evidence: PassiveEvidence, now: Instant): void {
    subject.suspicion = evidence;
    if (!canConfirm(this.settings, evidence) || !this.mayEject(subject)) {
      this.eject(subject, now);
      return;
    }
    subject.stage = 'suspected';
    this.due.set(subject.slot, after(now, this.settings.confirmWait));
    this.outputs.push({ kind: 'ConfirmRequested', address: subject.address, evidence });
  }

  private eject(subject: Subject, now: Instant): void {
    const evidence = present(subject.suspicion, 'only a suspected backend is ejected');
    if (!this.mayEject(subject)) {
      this.withheld += 1;
      this.pause(subject, now);
      return;
    }
    if (now >= after(subject.returnedAt, EJECTION_FORGIVEN)) subject.ejections = 0;
    const until = after(now, ejectionTime(subject.ejections));
    this.dismiss(subject);
    subject.stage = 'ejected';
    subject.ejections += 1;
    this.due.set(subject.slot, until);
    this.outputs.push({ kind: 'Ejected', address: subject.address, until, evidence });
  }

  private readmit(subject: Subject, reason: 'time-over' | 'last-available', now: Instant): void {
    this.dismiss(subject);
    subject.returnedAt = now;
    this.outputs.push({ kind: 'Returned', address: subject.address, reason });
  }

  private pause(subject: Subject, now: Instant): void {
    this.dismiss(subject);
    subject.pausedUntil = after(now, SUSPICION_PAUSE);
  }

  /** Back to serving, with nothing held against it. */
  private dismiss(subject: Subject): void {
    this.due.remove(subject.slot);
    subject.stage = 'serving';
    subject.suspicion = undefined;
    subject.refusals.clear();
    subject.answers.clear();
  }

  private mayEject(subject: Subject): boolean {
    const all = this.all();
    const ejected = all.filter(({ stage }) => stage === 'ejected').length;
    const isLast = !all.some((other) => other !== subject && isInRotation(other));
    return !isLast && ejected + 1 <= all.length * EJECTED_SHARE_MAX;
  }

  /** Nobody is left but the ejected: whoever may be doubted serves rather than nobody. */
  private rescue(now: Instant): void {
    const all = this.all();
    if (all.some(isInRotation)) return;
    for (const subject of all) {
      if (subject.available && subject.stage === 'ejected') {
        this.readmit(subject, 'last-available', now);
      }
    }
  }

  private forgetAnswers(): void {
    for (const subject of this.all()) {
      if (subject.suspicion?.kind === 'answers') this.dismiss(subject);
      subject.answers.clear();
    }
    this.bucketEnd = undefined;
  }

  private all(): Subject[] {
    return this.subjects.filter((subject) => subject !== undefined);
  }

  private subject(slot: number): Subject {
    return present(this.subjects[slot], 'a slot in use names a backend');
  }
}

function isInRotation({ available, stage }: Subject): boolean {
  return available && stage !== 'ejected';
}

/** Whether what is seen of it now may be held against it. */
function isWatched({ available, stage, pausedUntil }: Subject, now: Instant): boolean {
  return available && stage === 'serving' && now >= pausedUntil;
}

function canConfirm({ confirm }: PassiveSettings, { kind }: PassiveEvidence): boolean {
  return confirm === 'all' || (confirm === 'refusals' && kind === 'refusals');
}

/** Doubles with each ejection, up to the cap. */
function ejectionTime(earlier: number): Duration {
  return microseconds(Math.min(EJECTION_CAP, EJECTION_BASE * 2 ** earlier));
}
