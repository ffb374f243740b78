/**
 * `/flows`: one page of the list of live flows. A page looks at a bounded number of places of the tables, a few at a time, so
 * that datagrams never wait for a long list; where few places are taken it is short, and `next` says where to go on.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { parseCidr, type Cidr } from '../../core/cidr.ts';
import {
  parseAddress,
  type Address,
  type Command,
  type FlowCursor,
  type FlowFilter,
  type Reply,
} from '../../core/index.ts';
import { PROTOCOL_VERSION } from '../control/requests.ts';
import { flowView } from '../control/views.ts';

/** Places looked at in one turn: half a millisecond or so where all are live. */
const PLACES = 125;
/** Turns for one page, which has a thousand flows at most. */
const TURNS = 8;

const KEYS: ReadonlySet<string> = new Set(['after', 'listener', 'cluster', 'backend', 'source']);

interface PageQuery {
  readonly filter: FlowFilter;
  readonly from: FlowCursor | undefined;
}

/** A page as JSON; or what is wrong with the query, for whoever wrote it. */
export async function flowsPage(
  query: URLSearchParams,
  ask: (command: Command) => Promise<Reply>,
): Promise<{ readonly json: string } | { readonly problem: string }> {
  const asked = pageQuery(query);
  if (typeof asked === 'string') return { problem: asked };
  let next = asked.from;
  const lines: string[] = [];
  for (let turn = 0; turn < TURNS; turn += 1) {
    if (turn > 0) await nextTurn();
    const places = { limit: PLACES, slots: PLACES, from: next };
    const reply = await ask({ kind: 'ListFlows', filter: asked.filter, ...places });
    if (!reply.ok) return { problem: reply.error.message };
    if (reply.answer?.kind !== 'Flows') break;
    for (const flow of reply.answer.flows) lines.push(JSON.stringify(flowView(flow)));
    next = reply.answer.next;
    if (next === undefined) break;
  }
  const more = next === undefined ? '' : `,"next":"${next.listener}.${next.slot}"`;
  return { json: `{"v":${PROTOCOL_VERSION},"flows":[${lines.join(',')}]${more}}` };
}

function pageQuery(query: URLSearchParams): PageQuery | string {
  for (const key of query.keys()) if (!KEYS.has(key)) return `unknown parameter: ${key}`;
  const filter = filterIn(query);
  if (typeof filter === 'string') return filter;
  const after = query.get('after');
  const from = after === null ? undefined : cursorIn(after);
  if (after !== null && from === undefined) return 'after is what an earlier answer gave as next';
  return { filter, from };
}

function cursorIn(text: string): FlowCursor | undefined {
  const [, listener, slot] = /^(\d{1,6})\.(\d{1,8})$/.exec(text) ?? [];
  if (listener === undefined) return undefined;
  return { listener: Number(listener), slot: Number(slot) };
}

function filterIn(query: URLSearchParams): FlowFilter | string {
  const listener = addressIn(query, 'listener');
  if (typeof listener === 'string') return listener;
  const backend = addressIn(query, 'backend');
  if (typeof backend === 'string') return backend;
  const source = blockIn(query);
  if (typeof source === 'string') return source;
  return { listener, backend, source, cluster: query.get('cluster') ?? undefined };
}

function addressIn(query: URLSearchParams, key: string): Address | string | undefined {
  const text = query.get(key);
  return text === null ? undefined : (parseAddress(text) ?? `${key} is an address: ip:port`);
}

function blockIn(query: URLSearchParams): Cidr | string | undefined {
  const text = query.get('source');
  if (text === null) return undefined;
  const parsed = parseCidr(text);
  return parsed.ok ? parsed.cidr : `source: ${parsed.problem}`;
}
