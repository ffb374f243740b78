/** Commands that change the configuration of a running proxy: listeners, frontends, clusters, backends. */
import type { Command } from 'commander';
import { askOnce, type ClientOptions } from './ask.ts';
import { drainBackend, type DrainFlags } from './drain.ts';
import { action, addSetting, group, leaf, parseDuration, tomlValue } from './leaf.ts';

interface AtAddress extends ClientOptions {
  readonly address: string;
}

interface OfCluster extends ClientOptions {
  readonly id: string;
}

const ADDRESS = '-a, --address <ip:port>';
const CLUSTER = '-i, --id <cluster>';

export function addConfigCommands(program: Command): void {
  addListeners(group(program, 'listener', 'add, change and remove listeners'));
  addFrontends(group(program, 'frontend', 'lead listeners to clusters'));
  addClusters(group(program, 'cluster', 'add, change, remove and list clusters'));
  addBackends(group(program, 'backend', 'add, drain, remove and list backends'));
}

/** Options of a listener and the keys that they stand for. */
const LISTENER_OPTIONS = [
  ['--front-timeout <seconds>', 'idle this long after the last client datagram', 'frontTimeout'],
  ['--back-timeout <seconds>', 'idle this long after the last backend datagram', 'backTimeout'],
  ['--max-rx-datagram-size <bytes>', 'longer client datagrams are dropped', 'maxRxDatagramSize'],
  ['--max-flows <count>', 'live flows at most, 0 = automatic', 'maxFlows'],
  ['--public-address <ip:port>', 'no effect on datagrams', 'publicAddress'],
] as const;

interface ListenerFlags extends AtAddress {
  readonly frontTimeout?: unknown;
  readonly backTimeout?: unknown;
  readonly maxRxDatagramSize?: unknown;
  readonly maxFlows?: unknown;
  readonly publicAddress?: string | undefined;
  readonly settings?: Readonly<Record<string, unknown>> | undefined;
}

function addListeners(parent: Command): void {
  const udp = group(parent, 'udp', 'UDP listeners, named by their addresses');
  for (const [word, summary, example] of [
    ['add', 'add a listener, not yet active', 'add -a 127.0.0.1:5353 --front-timeout 60'],
    ['update', 'change what is given, for new flows', 'update -a 127.0.0.1:5353 --max-flows 500'],
  ] as const) {
    const command = leaf(udp, word, summary, `listener udp ${example}`);
    command.requiredOption(ADDRESS, 'where clients send to');
    for (const [flags, meaning, key] of LISTENER_OPTIONS) {
      if (key === 'publicAddress') command.option(flags, meaning);
      else command.option(flags, meaning, tomlValue);
    }
    command.option('--settings <key=value>', 'any key of [[listeners]]', addSetting);
    command.action(action((flags: ListenerFlags) => listener(`listener udp ${word}`, flags)));
  }
  for (const [word, summary] of [
    ['remove', 'close a listener and its flows, and forget it'],
    ['activate', 'open its socket'],
    ['deactivate', 'close its socket and flows, and keep the rest'],
  ] as const) {
    leaf(udp, word, summary, `listener udp ${word} -a 127.0.0.1:5353`)
      .requiredOption(ADDRESS, 'of the listener')
      .action(
        action((options: AtAddress) => {
          return askOnce(options, { command: `listener udp ${word}`, address: options.address });
        }),
      );
  }
}

function listener(command: string, flags: ListenerFlags): Promise<number> {
  const settings = {
    ...flags.settings,
    ...given('front_timeout', flags.frontTimeout),
    ...given('back_timeout', flags.backTimeout),
    ...given('max_rx_datagram_size', flags.maxRxDatagramSize),
    ...given('max_flows', flags.maxFlows),
    ...given('public_address', flags.publicAddress),
  };
  return askOnce(flags, { command, address: flags.address, settings });
}

function addFrontends(parent: Command): void {
  const udp = group(parent, 'udp', 'frontends of UDP listeners');
  for (const [word, summary] of [
    ['add', 'lead a listener to a cluster'],
    ['remove', 'lead it nowhere'],
  ] as const) {
    leaf(udp, word, summary, `frontend udp ${word} -i dns -a 127.0.0.1:5353`)
      .requiredOption(CLUSTER, 'name of the cluster')
      .requiredOption(ADDRESS, 'of the listener')
      .action(
        action((options: OfCluster & AtAddress) => {
          const { id, address } = options;
          return askOnce(options, { command: `frontend udp ${word}`, cluster: id, address });
        }),
      );
  }
}

interface ClusterFlags extends OfCluster {
  readonly loadBalancingPolicy?: string | undefined;
  readonly settings?: Readonly<Record<string, unknown>> | undefined;
}

function addClusters(parent: Command): void {
  leaf(
    parent,
    'add',
    'add a cluster, or change what is given of one that is there',
    'cluster add -i dns --load-balancing-policy hrw --settings udp.preset=dns',
  )
    .requiredOption(CLUSTER, 'its name')
    .option('--load-balancing-policy <policy>', 'round_robin, random, …, hrw or maglev')
    .option(
      '--settings <key=value>',
      'any key of [clusters.<id>], such as udp.requests',
      addSetting,
    )
    .action(
      action((options: ClusterFlags) => {
        const policy = given('load_balancing', options.loadBalancingPolicy?.toUpperCase());
        const settings = { ...options.settings, ...policy };
        return askOnce(options, { command: 'cluster add', cluster: options.id, settings });
      }),
    );
  leaf(parent, 'remove', 'forget a cluster and its backends', 'cluster remove -i dns')
    .requiredOption(CLUSTER, 'its name')
    .action(
      action((options: OfCluster) => {
        return askOnce(options, { command: 'cluster remove', cluster: options.id });
      }),
    );
  addList(parent, 'cluster', 'list clusters');
}

function addList(parent: Command, word: 'cluster' | 'backend', summary: string): void {
  leaf(parent, 'list', summary, `${word} list`)
    .option(CLUSTER, 'of this cluster only')
    .action(
      action((options: Partial<OfCluster>) => {
        return askOnce(options, { command: `${word} list`, cluster: options.id });
      }),
    );
}

interface BackendFlags extends OfCluster, AtAddress {
  readonly backendId?: string | undefined;
  readonly weight?: unknown;
  readonly backup?: unknown;
}

function addBackends(parent: Command): void {
  backendLeaf(parent, 'add', 'add a backend, or change the one with this id and address', {
    more: '--weight 50',
  })
    .option('--backend-id <name>', 'its name; one that is there keeps its own')
    .option('--weight <0..255>', 'its share of new flows, 100 unless given', tomlValue)
    .option('-b, --backup <true|false>', 'only when no other is eligible', tomlValue)
    .action(action((options: BackendFlags) => addBackend(options)));
  addList(parent, 'backend', 'list backends with their state, health and live flows');
  backendLeaf(
    parent,
    'remove',
    'remove a backend; its flows go the way of on_backend_removed',
  ).action(backendAction('backend remove'));
  addDrain(parent);
  backendLeaf(
    parent,
    'undrain',
    'take it back, whether it was draining, drained or disabled',
  ).action(backendAction('backend undrain'));
  backendLeaf(parent, 'disable', 'no new flows, and those that it has lose it at once')
    .option('--force', 'even if it is the last one')
    .action(
      action((options: OfCluster & AtAddress & { readonly force?: boolean }) => {
        const { id: cluster, address, force } = options;
        return askOnce(options, { command: 'backend disable', cluster, address, force });
      }),
    );
  backendLeaf(parent, 'weight', 'change its share of new flows', { more: '50' })
    .argument('<0..255>', 'the weight')
    .action(async (weight: string, options: OfCluster & AtAddress) => {
      const { id: cluster, address } = options;
      const request = { command: 'backend weight', cluster, address, weight: tomlValue(weight) };
      process.exitCode = await askOnce(options, request);
    });
}

function addDrain(parent: Command): void {
  backendLeaf(
    parent,
    'drain',
    'no new flows; those that it has may stay until they end, or until the deadline',
    { more: '--deadline 30s --wait' },
  )
    .option('--deadline <time>', 'such as 2s or 5m: then what is left moves', parseDuration)
    .option('--wait', 'until it is drained, with progress; exit code 1 if that is called off')
    .option('--force', 'even if it is the last one')
    .action(action((options: DrainFlags) => drainBackend(options)));
}

function addBackend(options: BackendFlags): Promise<number> {
  const backend = {
    address: options.address,
    ...given('backend_id', options.backendId),
    ...given('weight', options.weight),
    ...given('backup', options.backup),
  };
  return askOnce(options, { command: 'backend add', cluster: options.id, backend });
}

function backendLeaf(
  parent: Command,
  word: string,
  summary: string,
  { more = '' }: { readonly more?: string } = {},
): Command {
  const example = `backend ${word} -i dns -a 10.0.0.10:53 ${more}`.trimEnd();
  return leaf(parent, word, summary, example)
    .requiredOption(CLUSTER, 'name of its cluster')
    .requiredOption(ADDRESS, 'of the backend');
}

function backendAction(command: string): (options: OfCluster & AtAddress) => Promise<void> {
  return action((options: OfCluster & AtAddress) => {
    return askOnce(options, { command, cluster: options.id, address: options.address });
  });
}

function given(key: string, value: unknown): Readonly<Record<string, unknown>> {
  return value === undefined ? {} : { [key]: value };
}
