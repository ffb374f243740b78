/** Commands about live flows: lists, one flow, its end, reasons for a selection, and who is busiest. */
import { InvalidArgumentError, Option, type Command } from 'commander';
import * as z from 'zod';
import type { ControlClient } from '../control/client.ts';
import { EXIT_OK, EXIT_REFUSED, EXIT_USAGE } from '../exit-codes.ts';
import { askOnce, printJson, tellReply, withClient, type ClientOptions } from './ask.ts';
import { collectFlows, type FlowFilterFlags } from './flow-list.ts';
import { action, actionOn, group, leaf, parseDuration, tomlValue } from './leaf.ts';
import { top, type TopFlags } from './top.ts';

export function addFlowCommands(program: Command): void {
  const flows = group(program, 'flows', 'live flows');
  withFilter(
    leaf(flows, 'list', 'live flows that fit all that is given', 'flows list --source 10.0.0.0/8'),
  )
    .option('--limit <count>', 'as many at most, 10000 unless given', tomlValue)
    .action(action((options: FlowFilterFlags) => listFlows(options)));
  leaf(flows, 'show', 'one flow', 'flows show 0.17')
    .argument('<flow>', 'its name, as the list gives it')
    .action(
      actionOn((flow, options: ClientOptions) => askOnce(options, { command: 'flows show', flow })),
    );
  withFilter(
    leaf(
      flows,
      'kill',
      'end flows at once, by name or by filter',
      'flows kill --backend 10.0.0.10:53',
    ),
  )
    .argument('[flows...]', 'their names, as the list gives them')
    .action(async (names: readonly string[], options: FlowFilterFlags) => {
      process.exitCode = await killFlows(names, options);
    });
  leaf(program, 'why', 'where a client’s datagrams go, and for what reason', 'why 10.1.2.3:4567')
    .argument('<client>', 'its address, ip:port')
    .option('--listener <ip:port>', 'the one it sends to, where there are several')
    .action(
      actionOn((client, options: ClientOptions & { readonly listener?: string }) => {
        return askOnce(options, { command: 'why', client, listener: options.listener });
      }),
    );
  leaf(program, 'top', 'the busiest clients and backends, again and again', 'top --interval 2s')
    .addOption(
      new Option('--interval <time>', 'between two looks')
        .argParser(parseDuration)
        .default(2_000, '2s'),
    )
    .option('--rows <count>', 'of each table', toCount, 15)
    .option('--once', 'two looks, one answer; also where the output is no terminal')
    .action(action((options: TopFlags) => top(options)));
}

const FLOW_NAME = z.looseObject({ flow: z.string() });

function listFlows(options: FlowFilterFlags): Promise<number> {
  return withClient(options, async (client) => {
    const { reply, flows } = await collectFlows(client, options);
    if (!reply.ok) return tellReply(reply, options);
    const sums = z.looseObject({ matched: z.number() }).parse(reply.answer);
    const rest = sums.matched - flows.length;
    if (rest > 0 && options.json !== true) process.stderr.write(`and ${rest} more\n`);
    const answer = options.json === true ? { flows, ...sums } : { flows };
    return tellReply({ ...reply, answer }, options);
  });
}

/** One that ended meanwhile is no failure of a filter, but one of a name. */
async function killFlows(names: readonly string[], options: FlowFilterFlags): Promise<number> {
  const { listener, cluster, backend, source } = options;
  const isFiltered = [listener, cluster, backend, source].some((one) => one !== undefined);
  if (isFiltered === names.length > 0) {
    process.stderr.write('name flows, or give a filter\n');
    return EXIT_USAGE;
  }
  return withClient(options, async (client) => {
    if (!isFiltered) return killAll(client, names, true, options);
    const { reply, flows } = await collectFlows(client, options);
    if (!reply.ok) return tellReply(reply, options);
    const found = flows.map((row) => FLOW_NAME.parse(row).flow);
    return killAll(client, found, false, options);
  });
}

async function killAll(
  client: ControlClient,
  names: readonly string[],
  isEachMeant: boolean,
  options: ClientOptions,
): Promise<number> {
  let killed = 0;
  for (const flow of names) {
    const reply = await client.ask({ command: 'flows kill', flow });
    if (reply.ok) killed += 1;
    else if (isEachMeant && options.json !== true) tellReply(reply, options);
  }
  const isAll = killed === names.length || !isEachMeant;
  if (options.json === true) printJson({ ok: isAll, answer: { killed } });
  else process.stdout.write(`${killed} ${killed === 1 ? 'flow' : 'flows'} killed\n`);
  return isAll ? EXIT_OK : EXIT_REFUSED;
}

function withFilter(command: Command): Command {
  return command
    .option('--listener <ip:port>', 'of this listener')
    .option('--cluster <name>', 'admitted to this cluster')
    .option('--backend <ip:port>', 'on this backend')
    .option('--source <block>', 'of clients in this block, such as 10.0.0.0/8, or at this address');
}

function toCount(text: string): number {
  if (!/^[1-9]\d{0,3}$/.test(text)) throw new InvalidArgumentError('expected a number from 1 up');
  return Number(text);
}
