/** Commands about the process as a whole: its state, its file, its events, its end. */
import { resolve } from 'node:path';
import type { Command } from 'commander';
import * as z from 'zod';
import type { ControlClient, Heard } from '../control/client.ts';
import { EXIT_UNREACHABLE } from '../exit-codes.ts';
import { askOnce, codeOf, printJson, tellReply, withClient, type ClientOptions } from './ask.ts';
import { PROBLEMS } from '../control/client.ts';
import { formatProblems } from './check.ts';
import { action, group, leaf } from './leaf.ts';
import { oneLine } from './render.ts';
import { loadState, saveState } from './state-file.ts';

export function addProcessCommands(program: Command): void {
  leaf(
    program,
    'status',
    'what runs: listeners, clusters, backends, the last reload',
    'status',
  ).action(action((options: ClientOptions) => askOnce(options, { command: 'status' })));
  addReload(program);
  addShutdown(program);
  addState(group(program, 'state', 'save the running configuration, and load it'));
  leaf(
    group(program, 'metrics', 'figures'),
    'get',
    'counters and gauges, by the names of /metrics',
    'metrics get --names sozu_udp_active_flows',
  )
    .option('--names <names...>', 'only these, each as a whole')
    .action(
      action((options: ClientOptions & { readonly names?: readonly string[] }) => {
        return askOnce(options, { command: 'metrics get', names: options.names });
      }),
    );
  leaf(
    program,
    'events',
    'tell what happens, from now on, a line for each',
    'events --json',
  ).action(
    action((options: ClientOptions) => withClient(options, (client) => hear(client, options))),
  );
  leaf(
    group(program, 'trace', 'the flight recorder'),
    'dump',
    'write what was recorded to a file, for replay',
    'trace dump',
  ).action(action((options: ClientOptions) => askOnce(options, { command: 'trace dump' })));
}

interface ReloadFlags extends ClientOptions {
  readonly file?: string | undefined;
  readonly dryRun?: boolean | undefined;
}

function addReload(program: Command): void {
  leaf(
    program,
    'reload',
    'read the file again: the whole of it, or nothing with an error in it; what it no longer has is removed',
    'reload --dry-run',
  )
    .option('-f, --file <file>', 'another file, this once')
    .option(
      '--dry-run',
      'only tell the commands, the share of new flows that moves, and live flows',
    )
    .action(action((options: ReloadFlags) => reload(options)));
}

/** Warnings of the file stand before what was done. */
function reload(options: ReloadFlags): Promise<number> {
  const { file, dryRun: dry_run = false } = options;
  const request = { command: 'reload', dry_run, file: file === undefined ? file : resolve(file) };
  return withClient(options, async (client) => {
    const reply = await client.ask(request);
    if (!reply.ok || options.json === true) return tellReply(reply, options);
    const { problems, ...rest } = RELOADED.parse(reply.answer);
    process.stderr.write(formatProblems(problems, { colour: process.stderr.isTTY }));
    return tellReply({ ...reply, answer: { ...rest, generation: reply.generation } }, options);
  });
}

const RELOADED = z.looseObject({ problems: PROBLEMS });

function addShutdown(program: Command): void {
  leaf(
    program,
    'shutdown',
    'admit nothing new, and end with the last flow or the grace time',
    'shutdown --hard',
  )
    .option('--hard', 'end at once')
    .option('--wait', 'until the process is gone')
    .action(
      action((options: ClientOptions & { readonly hard?: boolean; readonly wait?: boolean }) => {
        return withClient(options, async (client) => {
          const { hard = false, wait = false } = options;
          const reply = await client.ask({ command: 'shutdown', hard });
          if (reply.ok && wait) await client.ended;
          return tellReply(reply, options);
        });
      }),
    );
}

function addState(parent: Command): void {
  const FILE = '-f, --file <file>';
  leaf(parent, 'save', 'write the running configuration as commands', 'state save -f state.json')
    .requiredOption(FILE, 'a file that is written anew')
    .action(action((options: ClientOptions & { readonly file: string }) => saveState(options)));
  leaf(
    parent,
    'load',
    'give the commands of a file; what is there already is skipped',
    'state load -f state.json',
  )
    .requiredOption(FILE, 'as state save wrote it')
    .action(action((options: ClientOptions & { readonly file: string }) => loadState(options)));
}

/** Until the proxy ends, which is no success for who wanted to hear more. */
async function hear(client: ControlClient, options: ClientOptions): Promise<number> {
  client.onEvent((heard) => tellEvent(heard, options));
  const reply = await client.ask({ command: 'events' });
  if (!reply.ok) return tellReply(reply, options);
  await client.ended;
  return Math.max(codeOf(reply), EXIT_UNREACHABLE);
}

function tellEvent(heard: Heard, options: ClientOptions): void {
  if (heard.kind === 'missed') {
    if (options.json === true) printJson({ missed: heard.missed });
    else process.stdout.write(`… ${heard.missed} events were missed\n`);
  } else if (options.json === true) printJson({ event: heard.event });
  else {
    const { at, kind, ...rest } = heard.event;
    process.stdout.write(`${oneLine({ at })} ${oneLine({ kind })} ${oneLine(rest)}\n`);
  }
}
