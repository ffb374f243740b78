/**
 * Who may ask, and how: decided from a request's head alone. A page in a browser of this machine can reach loopback too; it
 * cannot make the browser say a name that is not the page's own, so a name that nobody allowed is refused (DNS rebinding).
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';

/** Why a request or a connection was refused, as it is counted. */
export type Refusal =
  | 'malformed'
  | 'host'
  | 'method'
  | 'body'
  | 'path'
  | 'token'
  | 'query'
  | 'readers'
  | 'slow_reader'
  | 'connections';

export const REFUSALS: readonly Refusal[] = [
  'malformed',
  'host',
  'method',
  'body',
  'path',
  'token',
  'query',
  'readers',
  'slow_reader',
  'connections',
];

export interface Head {
  readonly method: string | undefined;
  readonly path: string;
  readonly host: string | undefined;
  readonly authorization: string | undefined;
  readonly hasBody: boolean;
}

export interface GuardOptions {
  /** In lower case. */
  readonly hosts: readonly string[];
  readonly token: string | undefined;
}

/** An orchestrator asks these without a token; they tell nothing but yes or no. */
const OPEN_PATHS: ReadonlySet<string> = new Set(['/live', '/ready']);

export class Guard {
  private readonly hosts: ReadonlySet<string>;
  private readonly tokenHash: Buffer | undefined;

  constructor({ hosts, token }: GuardOptions) {
    this.hosts = new Set(['localhost', ...hosts]);
    this.tokenHash = token === undefined ? undefined : hashOf(token);
  }

  /** Undefined for a request that may be answered. */
  refusal({ method, path, host, authorization, hasBody }: Head): Refusal | undefined {
    if (!this.mayBeCalled(host)) return 'host';
    if (method !== 'GET' && method !== 'HEAD') return 'method';
    if (hasBody) return 'body';
    return OPEN_PATHS.has(path) || this.knows(authorization) ? undefined : 'token';
  }

  private mayBeCalled(host: string | undefined): boolean {
    const [, bracketed, bare = ''] =
      /^(?:\[([^\]]+)\]|([^:]+))(?::\d{1,5})?$/.exec(host ?? '') ?? [];
    if (bracketed !== undefined) return isIP(bracketed) === 6;
    return isIP(bare) === 4 || this.hosts.has(bare.toLowerCase());
  }

  /** Hashes have one length, so the time that the comparison takes says nothing about the token. */
  private knows(authorization: string | undefined): boolean {
    if (this.tokenHash === undefined) return true;
    const [, given = ''] = /^Bearer ([\x21-\x7e]+)$/i.exec(authorization ?? '') ?? [];
    return timingSafeEqual(this.tokenHash, hashOf(given));
  }
}

function hashOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
