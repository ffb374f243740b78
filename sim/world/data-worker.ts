/** The pump and the sockets of one data plane of a simulated process, and the way between it and the control plane. */
import type { Directed } from '../../core/control-pump.ts';
import type { Report } from '../../core/directives.ts';
import type { DataMachine } from '../../core/plane-contract.ts';
import { Pump } from '../../core/pump.ts';
import { microseconds } from '../../core/time.ts';
import type { Facts, OfPlane } from './facts.ts';
import type { Span } from './faults.ts';
import type { Kernel } from './os-kernel.ts';
import { SimulatedOs } from './os.ts';
import { DistantPlane, PlaneMail } from './plane-mail.ts';
import type { ProxySpec } from './spec.ts';

export interface WorkerOptions {
  readonly of: OfPlane;
  readonly spec: ProxySpec;
  readonly kernel: Kernel;
  readonly machine: DataMachine;
  /** When the control plane's side hears of it. */
  readonly onReport: (report: Report) => void;
  readonly onBound: (bound: Facts['Bound']) => void;
  readonly onTurn: () => void;
}

const AT_ONCE: Span = { low: microseconds(0), high: microseconds(0) };

export class DataWorker {
  readonly os: SimulatedOs;
  /** Where directives go. */
  readonly directed: Directed;
  readonly #options: WorkerOptions;
  readonly #directives: DistantPlane | undefined;
  readonly #reports: PlaneMail<Report> | undefined;

  constructor(options: WorkerOptions) {
    this.#options = options;
    const { of, spec, kernel, machine } = options;
    this.os = new SimulatedOs(kernel, { plane: of.plane, sharing: spec.workers });
    // Threads hear of each other in turns of their own, however soon.
    const delay = spec.planeDelay ?? (spec.workers && AT_ONCE);
    const { host } = kernel;
    const name = of.plane === 0 ? '' : `${of.plane}`;
    this.#reports = delay && new PlaneMail(host, delay, `reports${name}`, options.onReport);
    const report = this.#reports?.send.bind(this.#reports) ?? options.onReport;
    const pump = new Pump(machine, this.os, report);
    const endTurn = pump.endTurn.bind(pump);
    pump.endTurn = () => {
      endTurn();
      options.onTurn();
    };
    this.#tellBound();
    this.os.attach(pump);
    this.#directives = delay && new DistantPlane(host, delay, pump, `directives${name}`);
    this.directed = this.#directives ?? pump;
  }

  /** Nothing arrives any more, either way. */
  kill(): void {
    this.#directives?.mail.close();
    this.#reports?.close();
    this.os.kill();
  }

  #tellBound(): void {
    const { os } = this;
    const {
      of: { process, plane },
      onBound,
    } = this.#options;
    const open = os.openUpstream.bind(os);
    os.openUpstream = (socket, backend, source) => {
      const errno = open(socket, backend, source);
      const local = os.localOf(socket);
      if (errno === undefined && local !== undefined) onBound({ process, plane, socket, local });
      return errno;
    };
  }
}
