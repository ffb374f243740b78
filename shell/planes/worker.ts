/**
 * The thread of one data plane. Its loop waits in the kernel and never turns Node's event loop: timers are the time of a wait,
 * what the main thread says is fetched when the driver was woken, and whatever would need a promise is done elsewhere.
 */
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import {
  AssertionError,
  ControlPlane,
  DataPlane,
  figuresOf,
  Pump,
  type Report,
} from '../../core/index.ts';
import { loadLibc } from '../drivers/libc.ts';
import { MmsgDriver } from '../drivers/mmsg.ts';
import { followClock } from '../drivers/timer.ts';
import { recorderOf, type FlightRecorder, type RecorderSettings } from '../flight-recorder.ts';
import type { FromWorker, ToWorker, WorkerFigures, WorkerSetup, WorkerSocket } from './messages.ts';

/** Milliseconds. Whoever ends the process waits for a wait to end. */
const WAIT_AT_MOST = 1_000;

if (parentPort === null) throw new Error('this is the thread of a data plane, not a program');
const port = parentPort;
const setup: WorkerSetup = workerData;
followClock(setup.clockStart);
const libc = loadLibc();
if (typeof libc === 'string') throw new Error(libc);
const driver = new MmsgDriver(libc, setup.sharing);
const plane = new DataPlane(setup.options);
let reports: Report[] = [];
const state = { isDismissed: false };
const flight = setup.recorder && recordedBy(setup.recorder);
const machine = flight?.recorder.tapData(plane) ?? plane;
const pump = new Pump(machine, driver, (report) => reports.push(report));
const dumps: Dump[] = [];
driver.attach(pump, obey);
say({ kind: 'Ready', wakeFd: driver.wakeFd });
try {
  run();
} catch (error) {
  // What was heard last is gone with the thread.
  const trace = flight && lastTrace(flight, error);
  const isAssertion = error instanceof AssertionError;
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  say({ kind: 'Failing', trace, message, stack, isAssertion });
}

function run(): void {
  // What was said before the driver could be woken.
  obey();
  while (!state.isDismissed) {
    driver.turn(dumps.length > 0 ? 0 : WAIT_AT_MOST);
    tell();
    goOnDumping();
  }
  driver.close();
}

/** Tells what was reported, and after a stop the last figures. */
function tell(): void {
  if (reports.length === 0) return;
  const heard = reports;
  reports = [];
  const areMoved = heard.some(({ kind }) => kind === 'ListenerOpened' || kind === 'ListenerClosed');
  say({ kind: 'Heard', reports: heard, sockets: areMoved ? openSockets() : undefined });
  if (!heard.some(({ kind }) => kind === 'Stopped')) return;
  // Whoever waits for a trace gets all of it: after the end nobody listens.
  while (dumps.length > 0) goOnDumping();
  say({ kind: 'Ended', figures: figuresNow() });
}

function obey(): void {
  for (;;) {
    const received: { message: ToWorker } | undefined = receiveMessageOnPort(port);
    if (received === undefined) return;
    perform(received.message);
  }
}

function perform(message: ToWorker): void {
  switch (message.kind) {
    case 'Direct':
      for (const directive of message.messages) pump.direct(directive);
      pump.endTurn();
      tell();
      return say({ kind: 'Done', turn: message.turn });
    case 'Read':
      return say({ kind: 'Figures', request: message.request, figures: figuresNow() });
    case 'Dump':
      return beginDump(message);
    case 'Dismiss':
      state.isDismissed = true;
      return undefined;
  }
}

/** One block after each turn. */
interface Dump {
  readonly request: number;
  readonly blocks: Iterator<Uint8Array>;
  readonly release: () => void;
}

function beginDump({ request, reason, configuration }: Extract<ToWorker, { kind: 'Dump' }>): void {
  if (flight === undefined) return say({ kind: 'Trace', request, block: undefined });
  flight.configuration = () => configuration;
  const taken = flight.take(reason);
  const blocks = taken.blocks[Symbol.iterator]();
  dumps.push({ request, blocks, release: () => taken.release() });
}

function goOnDumping(): void {
  const [dump] = dumps;
  if (dump === undefined) return;
  const { request, blocks, release } = dump;
  const next = blocks.next();
  const block = next.done === true ? undefined : next.value;
  say({ kind: 'Trace', request, block });
  if (block !== undefined) return;
  dumps.shift();
  release();
}

/** Its control plane never hears anything: the true one has a recorder of its own, in the main thread. */
function recordedBy(settings: RecorderSettings): FlightRecorder {
  const control = { randomSeed: setup.options.randomSeed };
  return recorderOf(
    settings,
    { data: plane, control: new ControlPlane(control) },
    {
      plane: setup.options,
      control,
      stopped: ({ message }) => say({ kind: 'RecordingStopped', error: message }),
    },
  );
}

function lastTrace(recorder: FlightRecorder, error: unknown): string {
  try {
    return recorder.dumpNow(error instanceof AssertionError ? 'assertion' : 'exception');
  } catch (failure) {
    return `none: ${String(failure)}`;
  }
}

function figuresNow(): WorkerFigures {
  const { trains, datagramsInTrains, trainsRefused } = driver.figures;
  return { plane: figuresOf(plane), trains: { trains, datagramsInTrains, trainsRefused } };
}

function openSockets(): WorkerSocket[] {
  return plane.listeners.all.flatMap(({ id, config: { address } }) => {
    const [bound, inode] = [driver.portOf(id), driver.inodeOf(id)];
    if (bound === undefined || inode === undefined) return [];
    return [{ listener: id, address, port: bound, inode }];
  });
}

function say(message: FromWorker): void {
  // oxlint-disable-next-line require-post-message-target-origin -- a thread has no origin
  port.postMessage(message);
}
