/**
 * `state save` and `state load`: a running configuration as a file of requests, one JSON object for each line. The file is the
 * client's, so the proxy reads and writes nothing for it.
 */
import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import * as z from 'zod';
import type { ControlClient } from '../control/client.ts';
import { PROTOCOL_VERSION } from '../control/requests.ts';
import { EXIT_OK, EXIT_REFUSED, EXIT_USAGE } from '../exit-codes.ts';
import { printable } from '../printable.ts';
import { printJson, tellReply, withClient, type ClientOptions } from './ask.ts';

type FileOptions = ClientOptions & { readonly file: string };

const STATE = z.looseObject({ requests: z.array(z.record(z.string(), z.unknown())) });

/** The whole file or none: it is moved to its place once it is written. */
export function saveState(options: FileOptions): Promise<number> {
  return withClient(options, async (client) => {
    const reply = await client.ask({ command: 'state' });
    if (!reply.ok) return tellReply(reply, options);
    const { requests } = STATE.parse(reply.answer);
    const lines = requests.map(
      (request) => `${JSON.stringify({ v: PROTOCOL_VERSION, ...request })}\n`,
    );
    const written = attempt(() => replaceFile(options.file, lines.join('')));
    if (typeof written === 'string') return fail(written);
    return tellReply({ ...reply, answer: { file: options.file, commands: lines.length } }, options);
  });
}

/** A device or a pipe, such as /dev/stdout, is written to: a file in its place would break what others do with it. */
function replaceFile(path: string, text: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isFile() === false)
    return writeFileSync(path, text);
  writeFileSync(`${path}.new`, text, { mode: 0o600 });
  return renameSync(`${path}.new`, path);
}

/** Lines of a file that is no state at all. */
const WRONG_TOLD_MAX = 20;

const RECORD = z.looseObject({ v: z.literal(PROTOCOL_VERSION), command: z.string() });

/** A command that asks for what is there already is skipped, as in Sōzu; any other refusal is told and makes the code 1. */
export function loadState(options: FileOptions): Promise<number> {
  const content = attempt(() => ({ text: readFileSync(options.file, 'utf8') }));
  if (typeof content === 'string') return Promise.resolve(fail(content));
  const lines = content.text.split('\n').map((line, index) => ({ line, number: index + 1 }));
  const records = lines
    .filter(({ line }) => line.trim() !== '')
    .map(({ line, number }) => ({ number, record: readRecord(line) }));
  const wrong = records.filter(({ record }) => record === undefined);
  if (wrong.length > 0) {
    const told = wrong.slice(0, WRONG_TOLD_MAX).map(({ number }) => {
      return fail(`${options.file}: line ${number} is no command of version 1`);
    });
    if (wrong.length > told.length) fail(`and ${wrong.length - told.length} more lines`);
    return Promise.resolve(EXIT_USAGE);
  }
  return withClient(options, async (client) => {
    const sums = { changed: 0, unchanged: 0, skipped: 0, refused: 0 };
    for (const { record } of records) sums[await give(client, record ?? {})] += 1;
    if (options.json === true) printJson({ ok: sums.refused === 0, answer: sums });
    else {
      const words = Object.entries(sums).map(([word, count]) => `${count} ${word}`);
      process.stdout.write(`${words.join(', ')}\n`);
    }
    return sums.refused === 0 ? EXIT_OK : EXIT_REFUSED;
  });
}

async function give(
  client: ControlClient,
  request: Readonly<Record<string, unknown>>,
): Promise<'changed' | 'unchanged' | 'skipped' | 'refused'> {
  const reply = await client.ask(request);
  if (reply.ok) return reply.changed ? 'changed' : 'unchanged';
  if (reply.error.kind === 'Exists') return 'skipped';
  const about = printable(JSON.stringify(request)).slice(0, 200);
  process.stderr.write(`refused: ${printable(reply.error.message)}: ${about}\n`);
  return 'refused';
}

function readRecord(line: string): Readonly<Record<string, unknown>> | undefined {
  const parsed = attempt(() => ({ value: parseJson(line) }));
  return typeof parsed === 'string' ? undefined : RECORD.safeParse(parsed.value).data;
}

function parseJson(line: string): unknown {
  return JSON.parse(line);
}

function fail(message: string): number {
  process.stderr.write(`${printable(message)}\n`);
  return EXIT_USAGE;
}

/** What `work` gives, or why it failed. */
function attempt<T extends object | void>(work: () => T): T | string {
  try {
    return work();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
