/**
 * One process of a proxy in a simulated world: a control plane and one data plane or a group of them, with their pumps as
 * production has them, on a simulated operating system. It tells oracles everything that passes its planes, and what it counts.
 */
import { present } from '../../core/assert.ts';
import type { Command, Reply } from '../../core/commands.ts';
import type { Config } from '../../core/config.ts';
import { ControlPlane, type ControlOptions } from '../../core/control-plane.ts';
import { ControlPump } from '../../core/control-pump.ts';
import { DataPlane } from '../../core/data-plane.ts';
import type { Report } from '../../core/directives.ts';
import { addCounters, newCounters } from '../../core/metrics.ts';
import type { DataMachine, PlaneOptions } from '../../core/plane-contract.ts';
import { PlaneGroup } from '../../core/plane-group.ts';
import { Verifier } from '../../core/verify.ts';
import type { VirtualClock } from '../clock.ts';
import { DataWorker } from './data-worker.ts';
import type { FactHub, FactKind, Facts, ProcessNumber } from './facts.ts';
import type { Tapped, Taps } from './own-trace.ts';
import { SimulatedControl, type TcpNetwork } from './os-control.ts';
import type { Kernel, ReceiveCounters } from './os-kernel.ts';
import type { ProxySpec } from './spec.ts';
import { WatchedControl, WatchedData } from './watched-planes.ts';

export interface ProcessOptions {
  readonly number: ProcessNumber;
  /** Which proxy of the world it is. */
  readonly proxy: number;
  readonly spec: ProxySpec;
  readonly kernel: Kernel;
  readonly tcp: TcpNetwork;
  readonly hub: FactHub;
  readonly clock: VirtualClock;
  readonly taps: Taps | undefined;
}

const PLACEMENT_SEED = { high: 1, low: 2 };

/** Turns from one recount of everything to the next: a recount costs as much as some turns. */
const VERIFY_EVERY = 16;

/** Kernel counters at some moment. */
interface KernelMark {
  readonly in: ReceiveCounters;
  readonly sends: number;
  readonly failed: number;
  readonly left: number;
  readonly stalled: number;
  readonly failedLate: number;
  readonly leaving: number;
}

export class ProxyProcess {
  readonly number: ProcessNumber;
  /** Its data planes, by number. */
  readonly planes: readonly WatchedData<DataPlane>[];
  readonly control: WatchedControl<ControlPlane>;
  readonly #options: ProcessOptions;
  readonly #workers: readonly DataWorker[];
  readonly #probes: SimulatedControl;
  readonly #controlPump: ControlPump;
  readonly #begun: KernelMark;
  readonly #verifier = new Verifier();
  #isOver = false;

  /** Nothing is told of a start before `start`. */
  constructor(options: ProcessOptions) {
    this.#options = options;
    this.number = options.number;
    const { kernel, tcp } = options;
    this.#begun = markOf(kernel);
    const process = this.number;
    this.control = new WatchedControl(new ControlPlane(this.controlOptions), {
      input: (input, now) => this.#tell('ControlInput', { process, input, now }),
      timeout: (now) => this.#tell('ControlTimeout', { process, now }),
      output: (output) => this.#tell('ControlOutput', { process, output }),
    });
    const count = options.spec.workers?.count ?? 1;
    const group = new PlaneGroup(count, {
      direct: (plane, message) => this.#at(plane).directed.direct(message),
      endTurn: (plane) => this.#at(plane).directed.endTurn(),
      report: (report) => this.#onReport(report),
    });
    this.planes = Array.from({ length: count }, (_, plane) => this.#watched(plane));
    const tapped = this.#tap();
    this.#workers = this.planes.map((data, plane) =>
      this.#worker(plane, tapped?.data ?? data, (report) => group.heard(plane, report)),
    );
    this.#probes = new SimulatedControl(kernel, tcp, () => undefined);
    this.#controlPump = new ControlPump(tapped?.control ?? this.control, this.#probes, group);
    this.#probes.attach(this.#controlPump);
  }

  /** What a data plane is made with. */
  dataOptions(plane: number): PlaneOptions {
    return planeOptionsOf(this.#options.spec, plane);
  }

  get controlOptions(): ControlOptions {
    return controlOptionsOf(this.#options.spec);
  }

  /** Whether it has neither crashed nor closed everything. */
  get isRunning(): boolean {
    return !this.#isOver;
  }

  start(config: Config): void {
    const { proxy, kernel } = this.#options;
    const { count } = kernel.descriptors;
    this.#tell('Started', { process: this.number, proxy, config, descriptors: count });
    this.#controlPump.configure(config);
  }

  command(command: Command, answered: (reply: Reply) => void = () => undefined): void {
    if (this.isRunning) this.#controlPump.command(command, answered);
  }

  /** Everything is gone at once. */
  crash(): void {
    if (!this.isRunning) return;
    this.#end();
    const { count: descriptors } = this.#options.kernel.descriptors;
    this.#tell('Crashed', { process: this.number, descriptors });
  }

  /** Tells what was counted until now. */
  count(): void {
    if (this.isRunning) this.#count();
  }

  #watched(plane: number): WatchedData<DataPlane> {
    const process = this.number;
    return new WatchedData(new DataPlane(this.dataOptions(plane)), {
      input: (input, now) => this.#tell('DataInput', { process, plane, input, now }),
      timeout: (now) => this.#tell('DataTimeout', { process, plane, now }),
      output: (output) => this.#tell('DataOutput', { process, plane, output }),
    });
  }

  /** What is recorded is one data plane beside the control plane. */
  #tap(): Tapped | undefined {
    const { taps } = this.#options;
    const [data, ...others] = this.planes;
    if (taps === undefined || data === undefined || others.length > 0) return undefined;
    const { number, control, controlOptions } = this;
    return taps.tap({ number, data, control, dataOptions: this.dataOptions(0), controlOptions });
  }

  #worker(plane: number, machine: DataMachine, onReport: (report: Report) => void): DataWorker {
    const { spec, kernel } = this.#options;
    const of = { process: this.number, plane };
    const onBound = (bound: Facts['Bound']): void => this.#tell('Bound', bound);
    const onTurn = (): void => {
      if (!this.#isOver) this.#sample(plane);
    };
    return new DataWorker({ of, spec, kernel, machine, onReport, onBound, onTurn });
  }

  #at(plane: number): DataWorker {
    return present(this.#workers[plane], 'a process has this plane');
  }

  #onReport(report: Report): void {
    this.#controlPump.report(report);
    if (report.kind === 'Stopped') this.#exit();
  }

  /** As production does once everything is closed: soon, so that the turn which closed it ends first. */
  #exit(): void {
    const { host } = this.#options.kernel;
    host.wake(() => {
      if (!this.isRunning) return;
      const { count: descriptors } = this.#options.kernel.descriptors;
      const probes = this.#probes.inFlight;
      this.#end();
      this.#tell('Exited', { process: this.number, descriptors, probes });
    });
  }

  #end(): void {
    this.#count();
    this.#isOver = true;
    for (const worker of this.#workers) worker.kill();
    this.#probes.kill();
  }

  #sample(plane: number): void {
    const { os } = this.#at(plane);
    const { machine } = present(this.planes[plane], 'a process has this plane');
    this.#tell('TurnEnded', {
      process: this.number,
      plane,
      now: os.now(),
      flows: machine.flowCount,
      waiting: machine.waiting,
      descriptors: this.#options.kernel.descriptors.count,
      listeners: os.listenerCount,
      upstreams: os.socketCount - os.listenerCount,
      probes: this.#probes.inFlight,
      wake: machine.pollTimeout(),
      turns: os.turns,
      idleTurns: os.idleTurns,
    });
    if (os.turns % VERIFY_EVERY === 0) this.#verify(machine);
  }

  #verify({ listeners }: DataPlane): void {
    const broken = listeners.all.flatMap(({ manager }) => this.#verifier.brokenInvariants(manager));
    this.#tell('Verified', { process: this.number, broken });
  }

  #count(): void {
    const { kernel } = this.#options;
    const counters = newCounters();
    let [waiting, untold] = [0, 0];
    for (const { machine } of this.planes) {
      addCounters(counters, machine.listeners.totals);
      waiting += machine.waiting;
    }
    for (const { os } of this.#workers) untold += os.failuresUntold;
    const now = markOf(kernel);
    const begun = this.#begun;
    const probed = this.#probes.traffic;
    this.#tell('Counted', {
      process: this.number,
      counters,
      waiting,
      kernelIn: {
        received: now.in.received - begun.in.received,
        overflowed: now.in.overflowed - begun.in.overflowed,
        strange: now.in.strange - begun.in.strange,
        unheard: now.in.unheard - begun.in.unheard,
        taken: now.in.taken - begun.in.taken - probed.taken,
        abandoned: now.in.abandoned - begun.in.abandoned,
        refusals: now.in.refusals - begun.in.refusals,
      },
      kernelOut: {
        accepted: now.sends - begun.sends - (now.failed - begun.failed) - probed.accepted,
        failedLate: now.failedLate - begun.failedLate - probed.failedLate,
        untold,
        stalled: now.stalled - begun.stalled,
        left: now.left - begun.left,
        leaving: now.leaving,
        leavingBefore: begun.leaving,
      },
      probes: { ...probed },
      kernelWaiting: kernel.waiting,
    });
  }

  #tell<Kind extends FactKind>(kind: Kind, fact: Facts[Kind]): void {
    const { hub, clock } = this.#options;
    hub.tell(kind, fact, clock.now());
  }
}

/** What a data plane of a proxy is made with. No two draw alike, and all place alike. */
export function planeOptionsOf({ randomSeed, shape }: ProxySpec, plane: number): PlaneOptions {
  const { high, low } = randomSeed;
  return {
    placementSeed: PLACEMENT_SEED,
    tableSeed: { first: low, second: high },
    randomSeed: { high, low: (low + plane) % 2 ** 32 },
    hosts: shape.addresses,
  };
}

/** What its control plane is made with. */
export function controlOptionsOf({ randomSeed }: ProxySpec): ControlOptions {
  return { randomSeed, placementSeed: PLACEMENT_SEED };
}

function markOf({ in: came, out, leaving }: Kernel): KernelMark {
  let failed = 0;
  for (const count of out.failed.values()) failed += count;
  const { sends, left, stalled, failedLate } = out;
  return { in: { ...came }, sends, failed, left, stalled, failedLate, leaving };
}
