/**
 * One process of a proxy in a simulated world: both planes and both pumps as production has them, on a simulated operating
 * system. It tells oracles everything that passes its planes, and how it stands between two turns.
 */
import type { Command, Reply } from '../../core/commands.ts';
import type { Config } from '../../core/config.ts';
import { ControlPlane, type ControlOptions } from '../../core/control-plane.ts';
import { ControlPump } from '../../core/control-pump.ts';
import { DataPlane } from '../../core/data-plane.ts';
import type { Report } from '../../core/directives.ts';
import type { PlaneOptions } from '../../core/plane-contract.ts';
import { Pump } from '../../core/pump.ts';
import { Verifier } from '../../core/verify.ts';
import type { VirtualClock } from '../clock.ts';
import type { FactHub, FactKind, Facts, ProcessNumber } from './facts.ts';
import type { Taps } from './own-trace.ts';
import { SimulatedControl, type TcpNetwork } from './os-control.ts';
import type { Kernel, ReceiveCounters } from './os-kernel.ts';
import { SimulatedOs } from './os.ts';
import { DistantPlane, PlaneMail } from './plane-mail.ts';
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
  readonly data: WatchedData<DataPlane>;
  readonly control: WatchedControl<ControlPlane>;
  readonly #options: ProcessOptions;
  readonly #os: SimulatedOs;
  readonly #probes: SimulatedControl;
  readonly #pump: Pump;
  readonly #controlPump: ControlPump;
  readonly #directives: DistantPlane | undefined;
  readonly #reports: PlaneMail<Report> | undefined;
  readonly #begun: KernelMark;
  readonly #verifier = new Verifier();
  #isOver = false;

  /** Nothing is told of a start before `start`. */
  constructor(options: ProcessOptions) {
    this.#options = options;
    this.number = options.number;
    const { kernel, spec, tcp } = options;
    const { host } = kernel;
    this.#begun = markOf(kernel);
    const process = this.number;
    this.data = new WatchedData(new DataPlane(this.dataOptions), {
      input: (input, now) => this.#tell('DataInput', { process, input, now }),
      timeout: (now) => this.#tell('DataTimeout', { process, now }),
      output: (output) => this.#tell('DataOutput', { process, output }),
    });
    this.control = new WatchedControl(new ControlPlane(this.controlOptions), {
      input: (input, now) => this.#tell('ControlInput', { process, input, now }),
      timeout: (now) => this.#tell('ControlTimeout', { process, now }),
      output: (output) => this.#tell('ControlOutput', { process, output }),
    });
    this.#os = new SimulatedOs(kernel);
    const { data, control } = options.taps?.tap(this) ?? this;
    this.#pump = new Pump(data, this.#os, (report) => this.#onReport(report));
    const open = this.#os.openUpstream.bind(this.#os);
    this.#os.openUpstream = (socket, backend, source) => {
      const errno = open(socket, backend, source);
      const local = this.#os.localOf(socket);
      if (errno === undefined && local !== undefined)
        this.#tell('Bound', { process, socket, local });
      return errno;
    };
    const endTurn = this.#pump.endTurn.bind(this.#pump);
    this.#pump.endTurn = () => {
      endTurn();
      if (!this.#isOver) this.#sample();
    };
    this.#os.attach(this.#pump);
    this.#probes = new SimulatedControl(kernel, tcp, () => undefined);
    const { planeDelay } = spec;
    this.#directives = planeDelay && new DistantPlane(host, planeDelay, this.#pump);
    this.#controlPump = new ControlPump(control, this.#probes, this.#directives ?? this.#pump);
    this.#reports =
      planeDelay &&
      new PlaneMail(host, planeDelay, 'reports', (report) => this.#controlPump.report(report));
    this.#probes.attach(this.#controlPump);
  }

  get dataOptions(): PlaneOptions {
    return planeOptionsOf(this.#options.spec);
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

  #onReport(report: Report): void {
    if (this.#reports === undefined) this.#controlPump.report(report);
    else this.#reports.send(report);
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
    this.#directives?.mail.close();
    this.#reports?.close();
    this.#os.kill();
    this.#probes.kill();
  }

  #sample(): void {
    const { machine } = this.data;
    const { descriptors } = this.#options.kernel;
    const flows = machine.flowCount;
    this.#tell('TurnEnded', {
      process: this.number,
      now: this.#os.now(),
      flows,
      waiting: machine.waiting,
      descriptors: descriptors.count,
      listeners: this.#os.listenerCount,
      upstreams: this.#os.socketCount - this.#os.listenerCount,
      probes: this.#probes.inFlight,
      wake: machine.pollTimeout(),
      turns: this.#os.turns,
      idleTurns: this.#os.idleTurns,
    });
    if (this.#os.turns % VERIFY_EVERY === 0) this.#verify();
  }

  #verify(): void {
    const broken = this.data.machine.listeners.all.flatMap(({ manager }) =>
      this.#verifier.brokenInvariants(manager),
    );
    this.#tell('Verified', { process: this.number, broken });
  }

  #count(): void {
    const { kernel } = this.#options;
    const { machine } = this.data;
    const now = markOf(kernel);
    const begun = this.#begun;
    const probed = this.#probes.traffic;
    this.#tell('Counted', {
      process: this.number,
      counters: { ...machine.listeners.totals },
      waiting: machine.waiting,
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
        untold: this.#os.failuresUntold,
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

/** What the data planes of a proxy are made with. */
export function planeOptionsOf({ randomSeed, shape }: ProxySpec): PlaneOptions {
  return {
    placementSeed: PLACEMENT_SEED,
    tableSeed: { first: randomSeed.low, second: randomSeed.high },
    randomSeed,
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
