/** The asking side of the control socket. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import * as z from 'zod';
import { encodeLine, LineSplitter, type WireReply } from './codec.ts';
import { PROTOCOL_VERSION } from './requests.ts';

/** No proxy answers there, or not one that speaks our language. */
export class UnreachableError extends Error {}

/** What to do where a socket cannot be opened, by errno. */
const WAYS_OUT: Readonly<Record<string, string>> = {
  EACCES: 'it is another user’s; ask as that user, or as root',
  ECONNREFUSED: 'its proxy has ended',
};
const ELSEWHERE = 'the one that runs says where with command_socket; --socket names it here';

const FOREIGN = 'the proxy speaks another language, or another version';

/** What the failure to read an answer tells: one of another shape, or deeper than any of ours. Throws any other again. */
export function foreign(error: unknown): UnreachableError {
  if (error instanceof UnreachableError) return error;
  if (error instanceof z.ZodError || error instanceof RangeError)
    return new UnreachableError(FOREIGN);
  throw error;
}

/** A proxy with forty thousand backends says some ten MiB in a line. */
const LINE_BYTES_MAX: number = 256 << 20;

const PROBLEM = z.looseObject({
  severity: z.enum(['error', 'warning', 'notice']),
  path: z.string(),
  line: z.number().optional(),
  column: z.number().optional(),
  problem: z.string(),
  fix: z.string().optional(),
});

/** Also of problems that come inside an answer. */
export const PROBLEMS: z.ZodType<
  readonly {
    readonly severity: 'error' | 'warning' | 'notice';
    readonly path: string;
    readonly problem: string;
  }[]
> = z.array(PROBLEM);

const REPLY = z.discriminatedUnion('ok', [
  z.object({
    ok: z.literal(true),
    changed: z.boolean(),
    generation: z.number(),
    answer: z.unknown().optional(),
  }),
  z.object({
    ok: z.literal(false),
    error: z.object({
      kind: z.string(),
      message: z.string(),
      problems: z.array(PROBLEM).optional(),
    }),
  }),
]);

const LINE = z.looseObject({
  v: z.literal(PROTOCOL_VERSION),
  id: z.number().optional(),
  part: z.unknown().optional(),
  event: z.record(z.string(), z.unknown()).optional(),
  missed: z.number().optional(),
});

/** An event as the proxy tells it, or how many were lost on us. */
export type Heard =
  | { readonly kind: 'event'; readonly event: Readonly<Record<string, unknown>> }
  | { readonly kind: 'missed'; readonly missed: number };

interface Waiting {
  readonly hearPart: (part: unknown) => void;
  readonly settle: (reply: WireReply) => void;
  readonly fail: (error: Error) => void;
}

export class ControlClient {
  private readonly socket: Socket;
  private readonly splitter = new LineSplitter(LINE_BYTES_MAX);
  private readonly waiting = new Map<number, Waiting>();
  private requests = 0;
  private hear: (heard: Heard) => void = () => undefined;
  private end: UnreachableError | undefined;
  /** Settles when the connection is over, whoever ended it. */
  readonly ended: Promise<void>;

  /** Rejects with an UnreachableError when nobody answers at `path`. */
  static async connect(path: string): Promise<ControlClient> {
    const socket = connect(path);
    try {
      await once(socket, 'connect');
    } catch (error) {
      const code = codeOf(error);
      throw new UnreachableError(
        `no proxy answers at ${path} (${code}): ${WAYS_OUT[code] ?? ELSEWHERE}`,
      );
    }
    return new ControlClient(socket);
  }

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Uint8Array) => this.onData(chunk));
    socket.on('error', () => undefined);
    this.ended = new Promise((resolve) => {
      socket.on('close', () => {
        this.fail('the proxy closed the connection');
        resolve();
      });
    });
  }

  /** Every event from now on goes to `hear`; they come once `events` was asked for. */
  onEvent(hear: (heard: Heard) => void): void {
    this.hear = hear;
  }

  /** Sends a request, `command` with its keys. Rejects with an UnreachableError when the proxy goes away. */
  ask(request: object, hearPart: (part: unknown) => void = () => undefined): Promise<WireReply> {
    return new Promise((settle, fail) => {
      if (this.end !== undefined) return fail(this.end);
      this.requests += 1;
      this.waiting.set(this.requests, { hearPart, settle, fail });
      return void this.socket.write(encodeLine({ ...request, id: this.requests }));
    });
  }

  close(): void {
    this.socket.destroy();
  }

  private onData(chunk: Uint8Array): void {
    const lines = this.splitter.push(chunk);
    if (lines === undefined) return this.fail('the proxy says more than can be true');
    try {
      for (const line of lines) this.onLine(line);
    } catch (error) {
      // Whoever hears a part or an event may find it to be none.
      this.fail(foreign(error).message);
    }
    return undefined;
  }

  private onLine(bytes: Uint8Array): void {
    const line = LINE.safeParse(parseJson(bytes));
    if (!line.success) return this.fail(FOREIGN);
    const { id, part, event, missed } = line.data;
    if (event !== undefined) return this.hear({ kind: 'event', event });
    if (missed !== undefined) return this.hear({ kind: 'missed', missed });
    return this.onReply(id ?? 0, part, line.data);
  }

  private onReply(id: number, part: unknown, line: unknown): void {
    const waiting = this.waiting.get(id);
    const reply = REPLY.safeParse(line);
    // Refused before it was read: so it is the answer to whatever we asked.
    if (waiting === undefined) {
      const message = reply.success && !reply.data.ok ? `: ${reply.data.error.message}` : '';
      return this.fail(`the proxy does not take what we say${message}`);
    }
    if (part !== undefined) return waiting.hearPart(part);
    if (!reply.success) return this.fail(FOREIGN);
    this.waiting.delete(id);
    return waiting.settle(reply.data);
  }

  private fail(message: string): void {
    this.end ??= new UnreachableError(message);
    for (const { fail } of this.waiting.values()) fail(this.end);
    this.waiting.clear();
    this.socket.destroy();
  }
}

function parseJson(line: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(line));
  } catch {
    return undefined;
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}
