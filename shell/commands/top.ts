/**
 * `top`: who is busiest, from two looks at the live flows. Rates are of client datagrams, by source address and by backend.
 */
import * as z from 'zod';
import type { ControlClient } from '../control/client.ts';
import { EXIT_OK } from '../exit-codes.ts';
import type { WireReply } from '../control/codec.ts';
import { colourOut, printJson, tellReply, withClient, type ClientOptions } from './ask.ts';
import { collectFlows, type FlowRow } from './flow-list.ts';
import { table } from './render.ts';

export interface TopFlags extends ClientOptions {
  /** Milliseconds. */
  readonly interval: number;
  readonly rows: number;
  readonly once?: boolean | undefined;
}

/** Until the proxy or the operator ends it, or once. */
export function top(flags: TopFlags): Promise<number> {
  const isOnce = flags.once === true || flags.json === true || !process.stdout.isTTY;
  return withClient(flags, async (client) => {
    let before = await look(client);
    for (;;) {
      if ('failed' in before) return tellReply(before.failed, flags);
      await new Promise((resolve) => setTimeout(resolve, Math.max(100, flags.interval)));
      const after = await look(client);
      if ('failed' in after) return tellReply(after.failed, flags);
      const busiest = compare(before, after, flags.rows);
      if (flags.json === true) printJson({ ok: true, answer: busiest });
      else process.stdout.write(isOnce ? text(busiest) : `\u001b[H\u001b[2J${text(busiest)}`);
      if (isOnce) return EXIT_OK;
      before = after;
    }
  });
}

const FLOW = z.looseObject({
  flow: z.string(),
  client: z.string(),
  cluster: z.string(),
  backend: z.string(),
  requests: z.number(),
  responses: z.number(),
});

type Flow = z.infer<typeof FLOW>;

interface Look {
  readonly at: number;
  readonly matched: number;
  readonly flows: ReadonlyMap<string, Flow>;
}

async function look(client: ControlClient): Promise<Look | { readonly failed: WireReply }> {
  const { reply, flows } = await collectFlows(client, {});
  if (!reply.ok) return { failed: reply };
  const { matched } = z.looseObject({ matched: z.number() }).parse(reply.answer);
  const known = flows.map((row) => FLOW.parse(row));
  return { at: performance.now(), matched, flows: new Map(known.map((one) => [one.flow, one])) };
}

interface Busiest {
  readonly flows: number;
  readonly requests_per_second: number;
  readonly clients: readonly FlowRow[];
  readonly backends: readonly FlowRow[];
}

/** A flow that is new since counts with all that it has. */
function compare(before: Look, after: Look, rows: number): Busiest {
  const elapsed = (after.at - before.at) / 1_000;
  const rates = [...after.flows.values()].map((flow) => {
    const known = before.flows.get(flow.flow);
    const requests = flow.requests - (known?.requests ?? 0);
    const responses = flow.responses - (known?.responses ?? 0);
    return { flow, requests, responses };
  });
  const total = rates.reduce((sum, { requests }) => sum + requests, 0);
  return {
    flows: after.matched,
    requests_per_second: Math.round(total / elapsed),
    clients: busiestBy(rates, elapsed, rows, ({ client }) => ({ client: hostOf(client) })),
    backends: busiestBy(rates, elapsed, rows, ({ cluster, backend }) => ({ cluster, backend })),
  };
}

interface Rate {
  readonly flow: Flow;
  readonly requests: number;
  readonly responses: number;
}

function busiestBy(
  rates: readonly Rate[],
  elapsed: number,
  rows: number,
  keyOf: (flow: Flow) => FlowRow,
): FlowRow[] {
  const sums = new Map<
    string,
    { key: FlowRow; flows: number; requests: number; responses: number }
  >();
  for (const { flow, requests, responses } of rates) {
    const key = keyOf(flow);
    const name = JSON.stringify(key);
    const sum = sums.get(name) ?? { key, flows: 0, requests: 0, responses: 0 };
    sums.set(name, sum);
    sum.flows += 1;
    sum.requests += requests;
    sum.responses += responses;
  }
  return [...sums.values()]
    .sort((one, other) => other.requests - one.requests || other.flows - one.flows)
    .slice(0, rows)
    .map(({ key, flows, requests, responses }) => ({
      ...key,
      flows,
      requests_per_second: Math.round(requests / elapsed),
      responses_per_second: Math.round(responses / elapsed),
    }));
}

/** Without its port. */
function hostOf(address: string): string {
  return address.replace(/:\d+$/, '');
}

function text({ flows, requests_per_second, clients, backends }: Busiest): string {
  const head = `${flows} flows, ${requests_per_second} requests/s\n`;
  if (flows === 0) return head;
  return `${head}\n${table(clients, colourOut())}\n${table(backends, colourOut())}`;
}
