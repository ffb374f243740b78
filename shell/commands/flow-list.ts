/** The list of live flows as the proxy gives it: in parts, so that it never holds the datagrams for long. */
import * as z from 'zod';
import type { ControlClient } from '../control/client.ts';
import type { WireReply } from '../control/codec.ts';
import type { ClientOptions } from './ask.ts';

export interface FlowFilterFlags extends ClientOptions {
  readonly listener?: string | undefined;
  readonly cluster?: string | undefined;
  readonly backend?: string | undefined;
  readonly source?: string | undefined;
  readonly limit?: unknown;
}

export type FlowRow = Readonly<Record<string, unknown>>;

const PART = z.looseObject({ flows: z.array(z.record(z.string(), z.unknown())) });

/** All parts of a list, and the reply that ends it. */
export async function collectFlows(
  client: ControlClient,
  { listener, cluster, backend, source, limit }: Omit<FlowFilterFlags, keyof ClientOptions>,
): Promise<{ readonly reply: WireReply; readonly flows: readonly FlowRow[] }> {
  const flows: FlowRow[] = [];
  const request = { command: 'flows list', listener, cluster, backend, source, limit };
  const reply = await client.ask(request, (part) => flows.push(...PART.parse(part).flows));
  return { reply, flows };
}
