/** `backend drain`: asks for it and, with --wait, tells how many flows are left until the backend is drained. */
import * as z from 'zod';
import { formatAddress, parseAddress, unmap } from '../../core/index.ts';
import type { ControlClient, Heard } from '../control/client.ts';
import type { WireReply } from '../control/codec.ts';
import { EXIT_OK, EXIT_REFUSED } from '../exit-codes.ts';
import { printJson, tellReply, withClient, type ClientOptions } from './ask.ts';

export interface DrainFlags extends ClientOptions {
  readonly id: string;
  readonly address: string;
  readonly deadline?: number | undefined;
  readonly wait?: boolean | undefined;
  readonly force?: boolean | undefined;
}

/** Exit code 0 when it is drained, 1 when it was refused or somebody called it off. */
export function drainBackend(flags: DrainFlags): Promise<number> {
  return withClient(flags, async (client) => {
    const waiting = flags.wait === true ? new DrainWait(client, flags) : undefined;
    await waiting?.listen();
    const { id: cluster, address, deadline: deadline_ms, force } = flags;
    const reply = await client.ask({
      command: 'backend drain',
      cluster,
      address,
      deadline_ms,
      force,
    });
    if (!reply.ok || waiting === undefined) return tellReply(reply, flags);
    return tellEnd(reply, await waiting.end(), flags);
  });
}

/** How a drain ended. Without `flows_left` it was over before anybody listened. */
type DrainEnd =
  | { readonly state: 'drained'; readonly flows_left?: number; readonly reason?: string }
  | { readonly state: 'active' | 'disabled' | 'removed' };

function tellEnd(reply: WireReply, end: DrainEnd, flags: DrainFlags): number {
  if (flags.json === true) printJson({ ...reply, answer: end });
  else if (end.state === 'drained') process.stdout.write(`drained: ${sentenceOf(end)}\n`);
  else process.stderr.write(`not drained: the backend is ${end.state}\n`);
  return end.state === 'drained' ? EXIT_OK : EXIT_REFUSED;
}

function sentenceOf({ flows_left: left, reason }: Extract<DrainEnd, { state: 'drained' }>): string {
  if (reason !== 'deadline') return 'no flow is left';
  return `the deadline came with ${left} ${left === 1 ? 'flow' : 'flows'} left`;
}

const DRAIN_EVENT = z.looseObject({
  kind: z.enum(['BackendDraining', 'BackendDrained']),
  cluster: z.string(),
  address: z.string(),
  flows_left: z.number(),
  reason: z.string().optional(),
});

const BACKENDS = z.looseObject({
  backends: z.array(z.looseObject({ address: z.string(), state: z.string(), flows: z.number() })),
});

/** What no event tells, because somebody else changed his mind, is asked for this often. */
const LOOK_MILLISECONDS = 500;

class DrainWait {
  private readonly client: ControlClient;
  private readonly cluster: string;
  private readonly address: string;
  private readonly isQuiet: boolean;
  private ended: ((end: DrainEnd) => void) | undefined;
  private found: DrainEnd | undefined;

  constructor(client: ControlClient, { id, address, json }: DrainFlags) {
    this.client = client;
    this.cluster = id;
    const parsed = parseAddress(address);
    this.address = parsed === undefined ? address : formatAddress(unmap(parsed));
    this.isQuiet = json === true;
  }

  /** Before the drain begins, so that nothing of it is missed. */
  async listen(): Promise<void> {
    this.client.onEvent((heard) => this.onEvent(heard));
    await this.client.ask({ command: 'events' });
  }

  async end(): Promise<DrainEnd> {
    const over = new Promise<DrainEnd>((resolve) => {
      if (this.found !== undefined) resolve(this.found);
      this.ended = resolve;
    });
    const timer = setInterval(() => void this.look(), LOOK_MILLISECONDS);
    void this.look();
    const gone = this.client.ended.then(() => this.client.ask({}));
    try {
      await Promise.race([over, gone]);
      return await over;
    } finally {
      clearInterval(timer);
      if (process.stderr.isTTY && !this.isQuiet) process.stderr.write('\r\u001b[K');
    }
  }

  private onEvent(heard: Heard): void {
    if (heard.kind !== 'event') return;
    const event = DRAIN_EVENT.safeParse(heard.event);
    if (!event.success) return;
    const { kind, cluster, address, flows_left, reason = 'empty' } = event.data;
    if (cluster !== this.cluster || address !== this.address) return;
    if (kind === 'BackendDraining') this.tell(flows_left);
    else this.settle({ state: 'drained', flows_left, reason });
  }

  /** A proxy that went away is told by the wait itself. */
  private async look(): Promise<void> {
    const request = { command: 'backend list', cluster: this.cluster };
    const reply = await this.client.ask(request).catch(() => undefined);
    if (reply?.ok !== true) return;
    const { backends = [] } = BACKENDS.safeParse(reply.answer).data ?? {};
    const known = backends.find(({ address }) => address === this.address);
    if (known === undefined) this.settle({ state: 'removed' });
    else if (known.state === 'active' || known.state === 'disabled') {
      this.settle({ state: known.state });
    } else if (known.state === 'drained') this.settle({ state: 'drained' });
  }

  private settle(end: DrainEnd): void {
    this.found ??= end;
    this.ended?.(this.found);
  }

  private tell(flows: number): void {
    if (this.isQuiet) return;
    const text = `draining: ${flows} ${flows === 1 ? 'flow' : 'flows'} left`;
    process.stderr.write(process.stderr.isTTY ? `\r\u001b[K${text}` : `${text}\n`);
  }
}
