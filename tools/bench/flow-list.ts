/**
 * How long a list of ten thousand live flows takes, and how long each of its parts holds the datagrams: in processor time,
 * which a busy neighbour does not change. What a client feels of it is its longest round trip in a slice of a second, with a
 * list in its middle and without, in turns.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { built, commandOf, ROOT } from './paths.ts';
import { withPrograms } from './lanes.ts';
import { backendCommand, freePort, loadCommand } from './peers.ts';
import { processorTime, type Placement, type Program } from './processes.ts';
import { quartiles, type Quartiles } from './statistics.ts';

export interface FlowListOptions {
  readonly rounds: number;
  readonly placement: Placement;
  readonly progress: (text: string) => void;
}

export interface FlowListResult {
  readonly flows: number;
  /** Milliseconds from the request to the last byte. */
  readonly list: Quartiles;
  readonly bytes: number;
  /** Milliseconds of processor time for each part, its sending included: no datagram is looked at meanwhile. */
  readonly part: Quartiles;
  readonly parts: number;
  /** Milliseconds: the longest round trip of each slice. */
  readonly pauseListing: Quartiles;
  readonly pauseQuiet: Quartiles;
}

const FLOWS = 10_000;
const SLICE_MS = 1_000;
/** Of an answer: the reply behind the parts stands there. */
const END_BYTES = 120;
const LINE_END = 10;

export async function measureFlowList(options: FlowListOptions): Promise<FlowListResult> {
  const { placement, progress } = options;
  return withPrograms(async (launch) => {
    const echo = launch('backend', backendCommand(), placement.peers);
    const backendPort = Number((await echo.waitFor(/^listening/)).split(' ')[1]);
    const port = await freePort();
    const { file, socket } = configuration(port, backendPort);
    const command = [...commandOf(ROOT), 'run', '--config', file];
    const proxy = launch('sozu-udp', command, placement.proxy);
    await proxy.waitFor(/"started"/);
    progress(`${FLOWS} flows`);
    const load = launch(
      'load',
      loadCommand(port, { flows: FLOWS, window: 1, bytes: 64 }),
      placement.peers,
    );
    await load.waitFor(/ready/);
    for (let listed = 0; listed < FLOWS; { listed } = await list(socket)) {
      load.say('touch 1000');
      await load.waitFor(/^\d+ \d+/);
      progress(`${listed} are open`);
    }
    const pinger = launch(
      'pinger',
      [process.execPath, built('tools/bench/pinger.js'), `${port}`],
      placement.peers,
    );
    await pinger.waitFor(/ready/);
    return measure(proxy, pinger, socket, options);
  });
}

async function measure(
  proxy: Program,
  pinger: Program,
  socket: string,
  { rounds, progress }: FlowListOptions,
): Promise<FlowListResult> {
  const [lists, parts, listing, quiet]: [number[], number[], number[], number[]] = [[], [], [], []];
  let alone: Listed = { took: 0, bytes: 0, listed: 0, parts: 0 };
  // The first rounds only compile the code.
  for (let round = -2; round < rounds; round += 1) {
    progress(`round ${Math.max(1, round + 1)} of ${rounds}`);
    const still = await slowestTrip(pinger, () => Promise.resolve());
    const busy = await slowestTrip(pinger, async () => void (await list(socket)));
    const before = processorTime(proxy.pid);
    alone = await list(socket);
    const spent = (processorTime(proxy.pid) - before) / 1_000_000;
    if (round < 0) continue;
    lists.push(alone.took);
    parts.push(spent / alone.parts);
    listing.push(busy);
    quiet.push(still);
  }
  return {
    flows: FLOWS,
    bytes: alone.bytes,
    parts: alone.parts,
    list: quartiles(lists),
    part: quartiles(parts),
    pauseListing: quartiles(listing),
    pauseQuiet: quartiles(quiet),
  };
}

/** Of a slice in the middle of which `work` begins; in milliseconds. */
async function slowestTrip(pinger: Program, work: () => Promise<void>): Promise<number> {
  pinger.say(`${SLICE_MS}`);
  const middle = new Promise((resolve) => setTimeout(resolve, SLICE_MS / 4));
  const [answer] = await Promise.all([pinger.waitFor(/^\d+ \d+ \d+/), middle.then(work)]);
  return Number(answer.split(' ')[1]) / 1_000;
}

interface Listed {
  /** Milliseconds. */
  readonly took: number;
  readonly bytes: number;
  readonly listed: number;
  readonly parts: number;
}

/** Asks for all flows; nothing is parsed here, for this process shares a processor with the pinger. */
async function list(path: string): Promise<Listed> {
  const socket = connect(path);
  await once(socket, 'connect');
  const began = performance.now();
  socket.write('{"v":1,"id":1,"command":"flows list"}\n');
  let [bytes, parts, end] = [0, 0, ''];
  for await (const chunk of socket) {
    const piece = Buffer.from(chunk);
    bytes += piece.length;
    for (let at = piece.indexOf(LINE_END); at >= 0; at = piece.indexOf(LINE_END, at + 1))
      parts += 1;
    end = (end + piece.subarray(-END_BYTES).toString('latin1')).slice(-END_BYTES);
    if (/"listed":\d+/.test(end)) break;
  }
  const listed = Number(/"listed":(\d+)/.exec(end)?.[1]);
  return { took: performance.now() - began, bytes, listed, parts: parts - 1 };
}

function configuration(port: number, backendPort: number): { file: string; socket: string } {
  const folder = join(ROOT, '.cache/bench/flows');
  mkdirSync(folder, { recursive: true });
  const [file, socket] = [join(folder, 'proxy.toml'), join(folder, 'control.sock')];
  const text = `command_socket = "./control.sock"
[[listeners]]
protocol = "udp"
address = "127.0.0.1:${port}"
max_flows = 16384
front_timeout = 600
back_timeout = 600
[clusters.bench]
protocol = "tcp"
load_balancing = "HRW"
frontends = [{ address = "127.0.0.1:${port}" }]
backends = [{ address = "127.0.0.1:${backendPort}" }]
`;
  writeFileSync(file, text);
  return { file, socket };
}
