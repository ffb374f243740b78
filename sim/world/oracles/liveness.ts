/**
 * Whoever asks in a world that has healed is answered within a bound. Judged are questions that nothing but trouble could
 * leave without an answer: their cluster refuses nobody for its rate or its share, its backends answer, the links lose
 * nothing, and the client asks one thing at a time from the same socket. When one is not answered, the detail says how far it
 * got and what it may be waiting for.
 */
import { sameAddress, type Address } from '../../../core/address.ts';
import type { ListenerId } from '../../../core/brand.ts';
import type { ClusterSettings, ListenerConfig } from '../../../core/config.ts';
import type { ControlOutput } from '../../../core/control-contract.ts';
import { milliseconds, until, type Duration, type Instant } from '../../../core/time.ts';
import { always, sometimes, type Property } from '../../properties.ts';
import type { ProcessNumber, ProcessSample } from '../facts.ts';
import type { Message } from '../message.ts';
import type { OracleKind } from '../oracle.ts';
import type { WorldSpec } from '../spec.ts';
import type { Verdicts } from '../verdicts.ts';
import { DirectedState } from './directed.ts';
import { Healing } from './healing.ts';

const ANSWERED: Property<'always'> = always('a question is answered in a world that has healed');
const ASKED: Property<'sometimes'> = sometimes('somebody asks in a world that has healed');

/** There and back over links of some milliseconds, with a backend that takes as long, and a process that wakes late. */
const ANSWER_TIME_MAX = milliseconds(400);

interface Question {
  readonly client: number;
  readonly serial: number;
  readonly at: Instant;
  readonly process: ProcessNumber;
  /** How far it got. */
  stage: 'sent' | 'at its backend' | 'answered by its backend';
}

export const LIVENESS: OracleKind = {
  name: 'liveness',
  begin: (verdicts, spec) => {
    const healing = new Healing(spec);
    const questions = new Questions(verdicts, spec);
    return {
      hearings: {
        PhaseBegan: (fact, at) => {
          questions.settle(at);
          questions.clear();
          questions.lost = false;
          healing.hearings.PhaseBegan?.(fact, at);
        },
        Acted: (fact, at) => {
          healing.hearings.Acted?.(fact, at);
          const { action } = fact;
          if (action.kind === 'Send') return;
          if (action.kind === 'Reopen') questions.forget(action.client % spec.clients.length);
          else questions.clear();
        },
        Packet: (fate) => {
          const isLost = fate.kind === 'lost' && fate.cause !== 'no-port';
          if (isLost || fate.kind === 'corrupted') questions.lost = true;
        },
        ClientSent: ({ client, dst, bytes, message }, at) => {
          questions.settle(at);
          if (message === undefined || !healing.isSettled(at)) return;
          const question = { client, serial: message.serial, at };
          questions.asked(question, { dst, bytes, patience: healing.patience });
        },
        BackendHeard: ({ message }) => questions.reached(message, 'at its backend'),
        BackendSent: ({ message }) => questions.reached(message, 'answered by its backend'),
        ClientHeard: ({ client, message }, at) => {
          questions.settle(at);
          if (message?.kind !== 'answer') return;
          questions.heard(client);
          questions.answered(client, message.serial);
        },
        Started: ({ process }) => questions.started(process),
        Crashed: ({ process }) => questions.ended(process),
        Exited: ({ process }) => questions.ended(process),
        DataInput: ({ process, plane, input }) => {
          if (input.kind === 'Directed') questions.stateOf(process, plane).hear(input.message);
        },
        ControlOutput: ({ process, output }) => questions.hear(process, output),
        TurnEnded: (sample) => questions.turnEnded(sample),
      },
    };
  },
};

interface Asked {
  readonly dst: Address;
  readonly bytes: number;
  /** How long the client must have asked in vain to be sure of an answer. */
  readonly patience: Duration;
}

/** What is known of a process. */
interface Served {
  /** By plane. */
  readonly directed: DirectedState[];
  sample: ProcessSample | undefined;
  /** Backends that new flows are kept from, by their probes or an operator. */
  readonly down: Set<string>;
}

class Questions {
  /** Datagrams get lost: who is not answered may have been unlucky. */
  lost = false;
  readonly #verdicts: Verdicts;
  readonly #spec: WorldSpec;
  readonly #answering: boolean;
  readonly #served = new Map<ProcessNumber, Served>();
  /** By client; the oldest first. */
  readonly #open = new Map<number, Question>();
  /** Since when each client asks in vain. */
  readonly #silent = new Map<number, Instant>();

  constructor(verdicts: Verdicts, spec: WorldSpec) {
    this.#verdicts = verdicts;
    this.#spec = spec;
    this.#answering = spec.backends.every(({ manner }) => {
      const { open, answers, elsewhere, answerBytes, delay } = manner;
      return open && answers > 0 && !elsewhere && answerBytes === 0 && delay < ANSWER_TIME_MAX / 4;
    });
  }

  started(process: ProcessNumber): void {
    this.#served.set(process, {
      directed: [],
      sample: undefined,
      down: new Set(),
    });
  }

  ended(process: ProcessNumber): void {
    this.#served.delete(process);
    this.clear();
  }

  stateOf(process: ProcessNumber, plane: number): DirectedState {
    const directed = this.#served.get(process)?.directed ?? [];
    return (directed[plane] ??= new DirectedState());
  }

  hear(process: ProcessNumber, output: ControlOutput): void {
    if (output.kind !== 'Direct') return;
    const { directive } = output.message;
    const down = this.#served.get(process)?.down;
    if (directive.kind !== 'SetHealth' || down === undefined) return;
    const { cluster, address, healthy } = directive;
    const name = `${cluster} ${address.a}:${address.port}`;
    if (healthy) down.delete(name);
    else down.add(name);
  }

  turnEnded(sample: ProcessSample): void {
    const served = this.#served.get(sample.process);
    if (served !== undefined) served.sample = sample;
    // Whoever comes while every place is taken is refused, and so is whoever came a moment ago.
    if (this.#open.size + this.#silent.size > 0 && served !== undefined && isFull(served))
      this.clear();
  }

  asked(
    { client, serial, at }: Pick<Question, 'client' | 'serial' | 'at'>,
    { dst, bytes, patience }: Asked,
  ): void {
    // Whoever asks again before an answer came still waits for the first.
    if (this.lost || this.#open.has(client) || !this.#answering) return;
    for (const [process, { directed }] of this.#served) {
      for (const [listener, config] of directed[0]?.listeners ?? []) {
        if (!isAt(config, dst, this.#spec)) continue;
        if (!directed.every((one) => mustAnswer(one, listener, bytes))) return;
        if (this.#silence(client, at) < patience) return;
        this.#verdicts.see(ASKED);
        this.#open.set(client, { client, serial, at, process, stage: 'sent' });
        return;
      }
    }
  }

  reached(message: Message | undefined, stage: Question['stage']): void {
    const question = message && this.#open.get(message.client);
    if (question?.serial === message?.serial && question !== undefined) question.stage = stage;
  }

  heard(client: number): void {
    this.#silent.delete(client);
  }

  answered(client: number, serial: number): void {
    if (this.#open.get(client)?.serial !== serial) return;
    this.#open.delete(client);
    this.#verdicts.check(ANSWERED, true, () => '');
  }

  /** Nobody will answer this client where it was. */
  forget(client: number): void {
    this.#open.delete(client);
    this.#silent.delete(client);
  }

  clear(): void {
    this.#open.clear();
    this.#silent.clear();
  }

  /** Whether anybody waits too long. */
  settle(at: Instant): void {
    for (const question of this.#open.values()) {
      const waits = until(question.at, at);
      if (waits <= ANSWER_TIME_MAX) return;
      this.#verdicts.check(ANSWERED, this.lost, () => {
        const { client, serial, process, stage } = question;
        return `question ${serial} of client ${client} was asked ${waits} µs ago and is ${stage}; ${this.#pending(process)}`;
      });
      this.#open.delete(question.client);
    }
  }

  /** For how long a client that asks again has not been answered. */
  #silence(client: number, at: Instant): Duration {
    const since = this.#silent.get(client) ?? at;
    this.#silent.set(client, since);
    return until(since, at);
  }

  /** What a process may be waiting for. */
  #pending(process: ProcessNumber): string {
    const served = this.#served.get(process);
    if (served?.sample === undefined) return `process ${process} has done nothing`;
    const { sample, down } = served;
    const directed = served.directed[sample.plane] ?? new DirectedState();
    const backends = [...directed.clusters.values()].flatMap((one) => one.backends).length;
    const reasons = [
      sample.listeners < directed.listeners.size && 'a listener is not open',
      sample.waiting > 0 && `${sample.waiting} datagrams wait in egress`,
      down.size >= backends && 'no backend is up',
      sample.flows > sample.upstreams && 'a flow has no socket',
      sample.wake !== undefined && `it sleeps until ${sample.wake.at} (${sample.wake.reason})`,
    ].filter((reason) => reason !== false);
    return `process ${process}: ${reasons.join(', ') || 'nothing is pending'}`;
  }
}

function isFull({ directed, sample }: Served): boolean {
  const listeners = sample === undefined ? undefined : directed[sample.plane]?.listeners.values();
  const least = Math.min(...[...(listeners ?? [])].map(({ maxFlows }) => maxFlows));
  return (sample?.flows ?? 0) >= least;
}

/** Whether this listener hears what is sent there. */
function isAt({ address }: ListenerConfig, dst: Address, { proxies }: WorldSpec): boolean {
  const isAny = address.a === 0 && address.b === 0 && address.c === 0 && address.d === 0;
  if (!isAny) return sameAddress(address, dst);
  const ours = proxies.some(({ shape }) =>
    shape.addresses.some((one) => sameAddress({ ...one, port: dst.port }, dst)),
  );
  return ours && address.port === dst.port && address.family === dst.family;
}

/** Whether nothing but trouble keeps an answer back. */
function mustAnswer(directed: DirectedState, listener: ListenerId, bytes: number): boolean {
  const settings = directed.clusterOf(listener);
  const { maxRxDatagramSize = 0, maxFlows = 0 } = directed.listeners.get(listener) ?? {};
  if (settings === undefined || settings.backends.length === 0) return false;
  return bytes <= maxRxDatagramSize && maxFlows > 0 && refusesNobody(settings);
}

function refusesNobody({
  rates,
  maxFlowsPerIp,
  maxFlowsPerSubnet,
  amplification,
  requests,
  requestsLinger,
  health,
}: ClusterSettings): boolean {
  const isRated = rates.newFlowsPerSecond + rates.datagramsPerSecond > 0;
  const isListed = rates.allow.length + rates.deny.length > 0;
  const isCapped = maxFlowsPerIp + maxFlowsPerSubnet > 0 || (requests > 0 && !requestsLinger);
  const failsClosed = health?.failOpen === false;
  return !isRated && !isListed && !isCapped && !failsClosed && amplification.factor === 0;
}
