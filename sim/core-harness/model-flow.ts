/** One flow as the shadow model keeps it, and what its terms say: when it has what it wants, and what it may still do. */
import type { CloseReason } from '../../core/contract.ts';
import type { DrawnCluster, DrawnTerms } from './actions.ts';

export interface ModelFlow {
  readonly source: number;
  readonly config: DrawnCluster;
  readonly serial: number;
  readonly openedAt: number;
  backend: number;
  requests: number;
  responses: number;
  deadline: number;
  headerDue: boolean;
  /** Its client may open another flow; this one has only its way back. */
  lingers: boolean;
  /** Lingers although every reply came, and then closes for this reason. */
  done: CloseReason | undefined;
  /** Reply bytes that its client may still be sent; Infinity once it is proven. */
  credit: number;
  /** Millionths of a datagram it may send at once, and when that was worked out. */
  tokens: number;
  tokensAt: number;
}

const DATAGRAM = 1_000_000;

/** Who opens a flow, where to, and under what. */
type Admission = Pick<ModelFlow, 'source' | 'backend' | 'config' | 'serial'>;

/** `now` is that of its first datagram, of `length` bytes, which its limits count. */
export function newFlow(admission: Admission, length: number, now: number): ModelFlow {
  const { source, backend, config, serial } = admission;
  return {
    source,
    config,
    serial,
    openedAt: now,
    backend,
    requests: 0,
    responses: 0,
    deadline: 0,
    headerDue: config.sendProxyProtocol,
    lingers: false,
    done: undefined,
    credit: firstCredit(config.terms, length),
    tokens: ((config.terms?.burst ?? 1) - 1) * DATAGRAM,
    tokensAt: now,
  };
}

function firstCredit(terms: DrawnTerms | undefined, length: number): number {
  if (terms === undefined || terms.creditFactor === 0) return Infinity;
  return Math.max(terms.creditFloor, terms.creditFactor * length);
}

/** Spends one datagram of the flow's own rate. */
export function takesDatagram(flow: ModelFlow, now: number): boolean {
  const { terms } = flow.config;
  if (terms === undefined || terms.rate === 0) return true;
  const { rate, burst } = terms;
  const grown = flow.tokens + (now - flow.tokensAt) * rate;
  flow.tokens = Math.min(burst * DATAGRAM, grown);
  flow.tokensAt = now;
  if (flow.tokens < DATAGRAM) return false;
  flow.tokens -= DATAGRAM;
  return true;
}

/** Replies still awaited; undefined where nobody knows how many there will be. */
export function awaited({ config, requests, responses }: ModelFlow): number | undefined {
  if (config.responses === 0) return undefined;
  const wanted = config.terms?.responsesPerRequest === true ? requests : 1;
  return config.responses * wanted - responses;
}
