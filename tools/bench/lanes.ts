/**
 * Lanes of a bench: programs that live at once, each between a load generator of its own and the backend of all. Whatever ends
 * early fails the bench with its last words, and nothing outlives it.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Contender } from './contenders.ts';
import type { Load } from './loads.ts';
import { backendCommand, freePort, loadCommand, type BackendManner } from './peers.ts';
import {
  removeScratch,
  scratchFolder,
  start,
  untilBound,
  type Placement,
  type Program,
} from './processes.ts';

export interface Lane {
  readonly name: string;
  readonly port: number;
  /** Its own, where its configuration is. */
  readonly folder: string;
  /** Undefined: the load goes straight to the backend. */
  readonly proxy: Program | undefined;
  readonly backend: Program;
}

export type Launch = (
  name: string,
  command: readonly string[],
  processors: string | undefined,
) => Program;

/** Runs `work`, which launches programs: rejects when one of them ends. In the end all of them stop, and scratch folders go. */
export async function withPrograms<T>(work: (launch: Launch) => Promise<T>): Promise<T> {
  const programs: Program[] = [];
  let fail: (error: Error) => void = () => undefined;
  const broken = new Promise<never>((_, reject) => {
    fail = reject;
  });
  const launch: Launch = (name, command, processors) => {
    const program = start(name, command, processors);
    programs.push(program);
    void program.ended.then(fail);
    return program;
  };
  try {
    return await Promise.race([broken, work(launch)]);
  } finally {
    await Promise.all(programs.map((program) => program.stop()));
    removeScratch();
  }
}

/** Starts the contenders, all of which can be had, with one backend. */
export async function openLanes(
  contenders: readonly (Contender | 'direct')[],
  { placement, manners = [] }: { placement: Placement; manners?: readonly BackendManner[] },
  launch: Launch,
): Promise<Lane[]> {
  const backend = launch('backend', backendCommand(...manners), placement.peers);
  const backendPort = Number((await backend.waitFor(/^listening \d+$/)).split(' ')[1]);
  const folder = scratchFolder();
  const lanes: Lane[] = [];
  for (const contender of contenders) {
    const own = join(folder, `${lanes.length}`);
    mkdirSync(own);
    if (contender === 'direct') {
      lanes.push({ name: 'direct', port: backendPort, folder: own, proxy: undefined, backend });
      continue;
    }
    const port = await freePort();
    const command = contender.command({ port, backendPort, folder: own });
    const proxy = launch(contender.name, command, placement.proxy);
    await untilBound(port);
    lanes.push({ name: contender.name, port, folder: own, proxy, backend });
  }
  return lanes;
}

/** The load generator of a lane, with its sockets open. */
export async function launchLoad(
  lane: Lane,
  load: Load,
  { placement, number }: { placement: Placement; number: number },
  launch: Launch,
): Promise<Program> {
  const program = launch('load', loadCommand(lane.port, load, number), placement.peers);
  await program.waitFor(/^ready$/);
  return program;
}

/** The answer of a load generator to a command whose slice is this long: numbers. */
export async function ask(load: Program, command: string, lengthMs: number): Promise<number[]> {
  const answer = load.waitFor(/^[\d.]+( ([\d.]+|NaN))+$/, lengthMs + 10_000);
  load.say(command);
  return (await answer).split(' ').map(Number);
}

const TOUCH_MS = 1_000;
const TOUCHES = 8;

/** Sends on every flow until each has had an answer, so that all of them are live; rejects when some never have. */
export async function openFlows(lane: Lane, load: Program): Promise<void> {
  let silent = 0;
  for (let attempt = 0; attempt < TOUCHES; attempt += 1) {
    const [trips = 0, , left = 0] = await ask(load, `touch ${TOUCH_MS}`, TOUCH_MS);
    if (trips === 0) break;
    silent = left;
    if (silent === 0) return;
  }
  throw new Error(
    silent === 0
      ? `no datagram came back through ${lane.name}`
      : `${silent} flows never had an answer through ${lane.name}`,
  );
}
