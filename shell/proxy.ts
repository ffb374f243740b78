/**
 * The production proxy: a control plane and a data plane, a pump for each, a driver and a prober, with the logs of what
 * they report.
 */
import { randomBytes } from 'node:crypto';
import { networkInterfaces } from 'node:os';
import {
  ControlPlane,
  ControlPump,
  DataPlane,
  formatAddress,
  parseIp,
  PLACEMENT_SEED,
  Pump,
  type Address,
  type ClusterCounters,
  type Config,
  type ControlPorts,
  type Hash64,
  type ListenerId,
  type ListenerCounters,
  type Report,
} from '../core/index.ts';
import { DgramDriver } from './drivers/dgram.ts';
import { OneTimer } from './drivers/timer.ts';
import { logEvent } from './event-log.ts';
import { LogLimiter, type Log } from './log.ts';
import { Prober } from './prober.ts';

/** What a stop did. */
export interface Stopped {
  /** Flows that were still live when everything was closed. */
  readonly flowsClosed: number;
}

type ListenerFailed = Extract<Report, { kind: 'ListenerFailed' }>;

/** A running proxy. Opens its listeners at once; `failures` says which did not open. */
export class Proxy {
  /** Settles when everything is closed after `drain` or `stop`. */
  readonly stopped: Promise<Stopped>;
  readonly failures: readonly ListenerFailed[];
  private readonly log: Log;
  private readonly limiter = new LogLimiter();
  private readonly driver = new DgramDriver();
  private readonly plane: DataPlane;
  private readonly control: ControlPlane;
  private readonly controlPump: ControlPump;
  private readonly failed: ListenerFailed[] = [];
  private settle: (stopped: Stopped) => void = () => undefined;

  constructor(config: Config, log: Log) {
    this.log = log;
    this.plane = new DataPlane({
      placementSeed: PLACEMENT_SEED,
      tableSeed: { first: randomWord(), second: randomWord() },
      randomSeed: randomSeed(),
      hosts: hostAddresses(),
    });
    const pump = new Pump(this.plane, this.driver, (report) => this.onReport(report));
    this.driver.attach(pump);
    this.control = new ControlPlane({ randomSeed: randomSeed() });
    this.controlPump = new ControlPump(this.control, this.controlPorts(), pump);
    this.stopped = new Promise((resolve) => {
      this.settle = resolve;
    });
    this.controlPump.configure(config);
    this.failures = this.failed;
  }

  /** Soft stop: admits nothing new, and closes when the last flow ended or the grace time is over. */
  drain(): void {
    this.controlPump.drain();
  }

  /** Hard stop: closes everything now. */
  stop(): void {
    this.controlPump.stop();
  }

  get flowCount(): number {
    return this.plane.flowCount;
  }

  countersOf(listener: ListenerId): Readonly<ListenerCounters> | undefined {
    return this.plane.countersOf(listener);
  }

  /** What the control plane counts of a cluster. */
  clusterCountersOf(cluster: string): Readonly<ClusterCounters> | undefined {
    return this.control.countersOf(cluster);
  }

  /** New flows that were given a backend although none of the cluster's was available. */
  failOpenSelectionsOf(cluster: string): number | undefined {
    return this.plane.clusters.backendsOf(cluster)?.failOpenSelections;
  }

  /** The port a listener is bound to: the kernel's choice where the configuration says 0. */
  portOf(listener: ListenerId): number | undefined {
    return this.driver.portOf(listener);
  }

  private controlPorts(): ControlPorts {
    const { driver } = this;
    const prober = new Prober((probe, answer) => this.controlPump.probeAnswered(probe, answer));
    const timer = new OneTimer(
      () => driver.now(),
      () => this.controlPump.timer(),
    );
    return {
      now: () => driver.now(),
      probe: (probe) => prober.start(probe),
      cancelProbe: (probe) => prober.cancel(probe),
      wakeAt: (at) => timer.wakeAt(at),
      event: (event) => logEvent(this.log, this.limiter, event),
    };
  }

  private onReport(report: Report): void {
    this.controlPump.report(report);
    switch (report.kind) {
      case 'ListenerOpened':
        this.log.info({ listener: formatAddress(report.address) }, 'listening');
        break;
      case 'ListenerFailed':
        this.failed.push(report);
        break;
      case 'ListenerClosed': {
        const { address, flowsClosed } = report;
        this.log.info({ listener: formatAddress(address), flowsClosed }, 'no longer listening');
        break;
      }
      case 'UpstreamFailed':
        this.logUpstreamFailure(report.errno);
        break;
      // For the control plane alone.
      case 'BackendRefused':
      case 'BackendTraffic':
      case 'BackendFlows':
        break;
      case 'Stopped':
        this.settle({ flowsClosed: report.flowsClosed });
        break;
    }
  }

  private logUpstreamFailure(errno: string): void {
    const suppressed = this.limiter.admit(errno);
    if (suppressed === undefined) return;
    this.log.warn({ errno, suppressed }, 'an upstream socket could not be opened; flow refused');
  }
}

function randomSeed(): Hash64 {
  return { high: randomWord(), low: randomWord() };
}

/** This machine's addresses as they are at the start. */
function hostAddresses(): Address[] {
  const interfaces = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return interfaces.flatMap(({ address }) => parseIp(address.replace(/%.*$/, ''), 0) ?? []);
}

function randomWord(): number {
  return randomBytes(4).readUInt32LE();
}
