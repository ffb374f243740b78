/**
 * Performs what is asked over the control socket. What can be decided is decided in the core; this turns requests into its
 * commands and its answers into JSON, and writes down who changed what.
 */
import {
  activeFlows,
  assertNever,
  flowsByBackend,
  type Address,
  type Command,
  type FlowCursor,
  type PlaneFigures,
  type Reply,
  type Status,
} from '../../core/index.ts';
import { readEnvironment } from '../config/environment.ts';
import type { ListenerBounds } from '../config/listener-config.ts';
import type { Log } from '../log.ts';
import { printable } from '../printable.ts';
import type { Proxy } from '../proxy.ts';
import type { Reloader } from '../reloader.ts';
import type { DecodedRequest, WireReply } from './codec.ts';
import { coreCommand } from './core-commands.ts';
import { metricViews } from './metric-views.ts';
import { cannotListen, refusal, reloadReply, toWire } from './replies.ts';
import {
  isAboutFlows,
  isMutation,
  isTold,
  type AboutFlows,
  type ControlRequest,
  type Told,
} from './requests.ts';
import { stateRequests } from './state.ts';
import { Turns } from './turns.ts';
import * as views from './views.ts';

/** Whoever asked, as far as long answers go. */
export interface Asker {
  /** Sends a part of an answer; settles when there is room for the next one. */
  part(body: object): Promise<void>;
  readonly isGone: boolean;
  /** Has every event sent from now on; false where too many others hear already. */
  subscribe(): boolean;
}

export interface ServiceOptions {
  readonly proxy: Proxy;
  readonly reloader: Reloader;
  readonly log: Log;
  readonly version: string;
}

type Asked = Pick<Extract<DecodedRequest, { ok: true }>, 'request' | 'asked'>;

/** A line of the log is no place for lists of ten thousand blocks. */
const AUDIT_CHARACTERS_MAX = 1_000;

const TOO_MANY_HEARERS = { kind: 'Busy', message: 'too many others hear events already' };

/** Places of flow tables that are looked at in one turn: one to two milliseconds where all are live. */
const SLOTS_PER_PART = 256;

export class ControlService {
  /** Of requests, and of the parts of long answers. */
  readonly turns: Turns = new Turns();
  private readonly proxy: Proxy;
  private readonly reloader: Reloader;
  private readonly log: Log;
  private readonly version: string;
  private readonly facts: views.Facts;
  /** One reading for all that an answer tells. */
  private figures: PlaneFigures;
  private flowsAt: views.Facts['flowsAt'] = () => 0;

  constructor({ proxy, reloader, log, version }: ServiceOptions) {
    this.proxy = proxy;
    this.reloader = reloader;
    this.log = log;
    this.version = version;
    this.figures = proxy.figures;
    this.facts = {
      flowsAt: (cluster, backend) => this.flowsAt(cluster, backend),
      flowsOfListener: (listener) => {
        const counters = listener === undefined ? undefined : this.figures.counters.get(listener);
        return counters && activeFlows(counters);
      },
    };
  }

  /** Does what is asked, and says what came of it. */
  async handle({ request, asked }: Asked, asker: Asker): Promise<WireReply> {
    if (isTold(request)) await this.refresh();
    const reply = await this.perform(request, asker);
    if (isMutation(request)) this.audit(asked, reply);
    return reply;
  }

  /** One line for each word that was meant to change something, done or not. */
  private audit(text: string, reply: WireReply): void {
    const what = reply.ok
      ? { changed: reply.changed, generation: reply.generation }
      : { error: reply.error.kind, reason: printable(reply.error.message) };
    const asked = printable(text.slice(0, AUDIT_CHARACTERS_MAX));
    this.log.info({ asked, ok: reply.ok, ...what }, 'control command');
  }

  private perform(request: ControlRequest, asker: Asker): Promise<WireReply> | WireReply {
    if (isTold(request)) return this.tell(request, asker);
    if (isAboutFlows(request)) return this.aboutFlows(request, asker);
    switch (request.command) {
      case 'reload':
        return request.dry_run ? this.dryRun(request.file) : this.reload(request.file);
      case 'listener udp activate':
        return this.activate(request.address);
      case 'trace dump':
        return this.dumpTrace();
      case 'shutdown':
        return this.ask({ kind: request.hard ? 'HardStop' : 'SoftStop' });
      default:
        return this.ask(coreCommand(request, this.status, this.bounds));
    }
  }

  private aboutFlows(request: AboutFlows, asker: Asker): Promise<WireReply> {
    switch (request.command) {
      case 'flows list':
        return this.listFlows(request, asker);
      case 'flows show':
        return this.ask({ kind: 'ShowFlow', flow: request.flow });
      case 'flows kill':
        return this.ask({ kind: 'KillFlow', flow: request.flow });
      case 'why':
        return this.why(request.client, request.listener);
      default:
        return assertNever(request);
    }
  }

  /** What is known without asking the data plane. */
  private tell(request: Told, asker: Asker): WireReply {
    const { status } = this;
    const told = (answer?: object): WireReply => {
      return { ok: true, changed: false, generation: status.generation, answer };
    };
    switch (request.command) {
      case 'status':
        return told(this.statusView(status));
      case 'events':
        return asker.subscribe() ? told() : refusal(TOO_MANY_HEARERS);
      case 'state':
        return told({ requests: stateRequests(status) });
      case 'metrics get':
        return told({ metrics: metricViews(this.proxy.measured, request.names) });
      case 'cluster list':
        return told({ clusters: views.clusterViews(only(status, request.cluster)) });
      case 'backend list':
        return told({ backends: views.backendViews(only(status, request.cluster), this.facts) });
      default:
        return assertNever(request);
    }
  }

  /** What `status` answers. */
  async overview(): Promise<views.View> {
    await this.refresh();
    return this.statusView(this.status);
  }

  private async refresh(): Promise<void> {
    await this.proxy.refresh();
    this.figures = this.proxy.figures;
    this.flowsAt = flowsByBackend(this.figures);
  }

  private statusView(status: Status): views.View {
    return {
      version: this.version,
      pid: process.pid,
      uptime_seconds: Math.floor(process.uptime()),
      generation: status.generation,
      stopping: status.stopping,
      grace_seconds: status.grace / 1_000_000,
      file: this.reloader.file,
      driver: this.proxy.about.driver,
      workers: this.proxy.workers.map(views.workerView),
      flows: this.figures.flows,
      last_reload: views.reloadView(this.reloader.last),
      listeners: views.listenerViews(status, this.facts),
      clusters: views.clusterViews(status),
      backends: views.backendViews(status, this.facts),
    };
  }

  /** Reads the file again: the whole of it, or nothing with an error in it. */
  private reload(file: string | undefined): Promise<WireReply> {
    const { reloader } = this;
    return new Promise((resolve) => {
      reloader.reload(
        'command',
        (outcome) => resolve(reloadReply(outcome, reloader.atNextStart)),
        file,
      );
    });
  }

  private dryRun(file: string | undefined): Promise<WireReply> {
    const { generation } = this.status;
    return new Promise((resolve) => {
      this.reloader.dryRun((run) => {
        if (!run.ok) return resolve(refusal(run.error, run.problems));
        const answer = {
          commands: run.commands.map(views.commandView),
          keys: run.preview.keys,
          listeners: views.previewViews(run.preview),
          problems: run.problems,
          at_next_start: run.atNextStart,
        };
        return resolve({ ok: true, changed: false, generation, answer });
      }, file);
    });
  }

  private async dumpTrace(): Promise<WireReply> {
    const { generation } = this.status;
    try {
      const files = await this.proxy.dumpTrace();
      return { ok: true, changed: false, generation, answer: { file: files[0], files } };
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      return refusal({ kind: 'Failed', message });
    }
  }

  /** One that cannot be bound is refused, and stays inactive. */
  private activate(address: Address): Promise<WireReply> {
    return new Promise((resolve) => {
      this.proxy.activate(address, (reply, failures) => {
        const [failure] = failures;
        resolve(failure === undefined ? toWire(reply) : cannotListen(failure));
      });
    });
  }

  /** In parts, between which datagrams pass. */
  private async listFlows(
    asked: Extract<AboutFlows, { command: 'flows list' }>,
    asker: Asker,
  ): Promise<WireReply> {
    const { command: _, limit, ...filter } = asked;
    let [from, listed, matched]: [FlowCursor | undefined, number, number] = [undefined, 0, 0];
    for (;;) {
      const rest = limit - listed;
      const query: Command = {
        kind: 'ListFlows',
        filter,
        limit: rest,
        slots: SLOTS_PER_PART,
        from,
      };
      const reply = await this.core(query);
      if (!reply.ok || reply.answer?.kind !== 'Flows') return toWire(reply);
      const { flows, next } = reply.answer;
      listed += flows.length;
      matched += reply.answer.matched;
      if (flows.length > 0) await asker.part({ flows: flows.map(views.flowView) });
      if (next === undefined || asker.isGone) {
        const { generation } = reply;
        return { ok: true, changed: false, generation, answer: { listed, matched } };
      }
      from = next;
      await this.turns.next();
    }
  }

  private async why(client: Address, at: Address | undefined): Promise<WireReply> {
    const listener = at ?? onlyListener(this.status);
    if (listener === undefined) {
      const message = 'there is not just one listener that is open: name one as `listener`';
      return refusal({ kind: 'Invalid', message });
    }
    const reply = await this.core({ kind: 'Why', client, listener });
    if (!reply.ok || reply.answer?.kind !== 'Why') return toWire(reply);
    const answer = views.whyView(client, listener, reply.answer);
    return { ok: true, changed: false, generation: reply.generation, answer };
  }

  private async ask(command: Command): Promise<WireReply> {
    return toWire(await this.core(command));
  }

  private core(command: Command): Promise<Reply> {
    return new Promise((resolve) => this.proxy.command(command, resolve));
  }

  /** What bounds a listener that is added now: as if it stood in the file. */
  private get bounds(): ListenerBounds {
    const { maxConnections, bufferSize } = this.reloader.settings;
    return { descriptorLimit: readEnvironment().descriptorLimit, maxConnections, bufferSize };
  }

  private get status(): Status {
    let found: Status | undefined;
    this.proxy.command({ kind: 'Status' }, (reply) => {
      if (reply.ok && reply.answer?.kind === 'Status') found = reply.answer.status;
    });
    if (found === undefined) throw new Error('status is answered at once');
    return found;
  }
}

/** Undefined unless there is just one that is open. */
function onlyListener({ listeners }: Status): Address | undefined {
  const open = listeners.filter(({ active }) => active);
  return open.length === 1 ? open[0]?.config.address : undefined;
}

/** Without clusters but the one that is named. */
function only(status: Status, cluster: string | undefined): Status {
  if (cluster === undefined) return status;
  return { ...status, clusters: status.clusters.filter((one) => one.settings.cluster === cluster) };
}
