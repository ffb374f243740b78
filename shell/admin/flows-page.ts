/**
 * `/flows`: one part of the list of live flows. A part looks at a bounded number of places of the tables, so that datagrams
 * never wait for a long list; where few places are taken it is short, and `next` says where to go on.
 */
import { parseCidr, type Cidr } from '../../core/cidr.ts';
import {
  parseAddress,
  type Address,
  type FlowCommand,
  type FlowCursor,
  type FlowFilter,
} from '../../core/index.ts';

/** Places looked at for one part, and so flows in it at most. */
const PLACES = 1_000;

const KEYS: ReadonlySet<string> = new Set(['after', 'listener', 'cluster', 'backend', 'source']);

/** A command, or what is wrong with the query. */
export function listFlows(query: URLSearchParams): FlowCommand | string {
  for (const key of query.keys()) if (!KEYS.has(key)) return `unknown parameter: ${key}`;
  const filter = filterIn(query);
  if (typeof filter === 'string') return filter;
  const after = query.get('after');
  const from = after === null ? undefined : cursorIn(after);
  if (after !== null && from === undefined) return 'after is what an earlier answer gave as next';
  return { kind: 'ListFlows', filter, limit: PLACES, slots: PLACES, from };
}

/** As `after` takes it. */
export function cursorText({ listener, slot }: FlowCursor): string {
  return `${listener}.${slot}`;
}

function cursorIn(text: string): FlowCursor | undefined {
  const [, listener, slot] = /^(\d{1,4})\.(\d{1,8})$/.exec(text) ?? [];
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
