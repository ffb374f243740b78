/** One command of the client from start to end: finds the proxy, asks, prints, and says with which code to end. */
import { Chalk } from 'chalk';
import { ControlClient, foreign, UnreachableError } from '../control/client.ts';
import type { WireReply } from '../control/codec.ts';
import { PROTOCOL_VERSION } from '../control/requests.ts';
import { clientSocket, SOCKET_VARIABLE } from '../control/socket-path.ts';
import { EXIT_OK, EXIT_REFUSED, EXIT_UNREACHABLE, EXIT_USAGE } from '../exit-codes.ts';
import { printable } from '../printable.ts';
import { formatProblems } from './check.ts';
import { render } from './render.ts';

/** What every command of the client takes. */
export interface ClientOptions {
  readonly socket?: string | undefined;
  readonly json?: boolean | undefined;
}

/** Asks once and prints what came of it. */
export function askOnce(options: ClientOptions, request: object): Promise<number> {
  return withClient(options, async (client) => tellReply(await client.ask(request), options));
}

/** Calls `work` with a connection, and ends with its code; with 3 where there is none, or no more. */
export async function withClient(
  options: ClientOptions,
  work: (client: ControlClient) => Promise<number>,
): Promise<number> {
  try {
    const path = clientSocket(options.socket);
    if (path === undefined) throw new UnreachableError(`${SOCKET_VARIABLE} names no socket`);
    const client = await ControlClient.connect(path);
    try {
      return await work(client);
    } finally {
      client.close();
    }
  } catch (error) {
    const { message } = foreign(error);
    if (options.json === true) printJson({ ok: false, error: { kind: 'Unreachable', message } });
    else process.stderr.write(`${printable(message)}\n`);
    return EXIT_UNREACHABLE;
  }
}

/** Prints a reply; the code that it stands for. */
export function tellReply(reply: WireReply, options: ClientOptions): number {
  if (options.json === true) printJson(reply);
  else if (reply.ok) process.stdout.write(textOf(reply));
  else process.stderr.write(refusalText(reply.error));
  return codeOf(reply);
}

/** 2 where the request itself was not right: that is the command line's fault. */
export function codeOf(reply: WireReply): number {
  if (reply.ok) return EXIT_OK;
  return reply.error.kind === 'BadRequest' ? EXIT_USAGE : EXIT_REFUSED;
}

export function printJson(body: object): void {
  process.stdout.write(`${printable(JSON.stringify({ v: PROTOCOL_VERSION, ...body }))}\n`);
}

export function colourOut(): { readonly colour: boolean } {
  return { colour: process.stdout.isTTY };
}

function textOf({ changed, generation, answer }: Extract<WireReply, { ok: true }>): string {
  if (answer !== undefined) return render(answer, colourOut());
  return `${changed ? 'done' : 'nothing changed'}, generation ${generation}\n`;
}

function refusalText({
  kind,
  message,
  problems,
}: Extract<WireReply, { ok: false }>['error']): string {
  const { isTTY: colour } = process.stderr;
  const chalk = new Chalk({ level: colour ? 1 : 0 });
  const head = `${chalk.red('refused')}: ${printable(message)} (${printable(kind)})\n`;
  const way =
    kind === 'LastBackend' ? '  fix: let another one serve first, or insist with --force\n' : '';
  return head + way + formatProblems(problems ?? [], { colour });
}
