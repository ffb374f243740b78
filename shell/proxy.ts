/** The production proxy: a data plane, the pump and a driver, with the logs of what the data plane reports. */
import { randomBytes } from 'node:crypto';
import { networkInterfaces } from 'node:os';
import {
  after,
  DataPlane,
  formatAddress,
  initialDirectives,
  parseIp,
  PLACEMENT_SEED,
  Pump,
  type Address,
  type Config,
  type ListenerId,
  type ListenerCounters,
  type Report,
} from '../core/index.ts';
import { DgramDriver } from './drivers/dgram.ts';
import { LogLimiter, type Log } from './log.ts';

/** What a stop did. */
export interface Stopped {
  /** Flows that were still live when everything was closed. */
  readonly flowsClosed: number;
}

type ListenerFailed = Extract<Report, { kind: 'ListenerFailed' }>;

/** The first and only generation of a configuration that is read once. */
const GENERATION = 1;

/** A running proxy. Opens its listeners at once; `failures` says which did not open. */
export class Proxy {
  /** Settles when everything is closed after `drain` or `stop`. */
  readonly stopped: Promise<Stopped>;
  readonly failures: readonly ListenerFailed[];
  private readonly config: Config;
  private readonly log: Log;
  private readonly limiter = new LogLimiter();
  private readonly driver = new DgramDriver();
  private readonly plane: DataPlane;
  private readonly pump: Pump;
  private readonly failed: ListenerFailed[] = [];
  private settle: (stopped: Stopped) => void = () => undefined;

  constructor(config: Config, log: Log) {
    this.config = config;
    this.log = log;
    this.plane = new DataPlane({
      placementSeed: PLACEMENT_SEED,
      tableSeed: { first: randomWord(), second: randomWord() },
      randomSeed: { high: randomWord(), low: randomWord() },
      hosts: hostAddresses(),
    });
    this.pump = new Pump(this.plane, this.driver, (report) => this.onReport(report));
    this.driver.attach(this.pump);
    this.stopped = new Promise((resolve) => {
      this.settle = resolve;
    });
    for (const directive of initialDirectives(config)) {
      this.pump.direct({ generation: GENERATION, directive });
    }
    this.pump.endTurn();
    this.failures = this.failed;
  }

  /** Soft stop: admits nothing new, and closes when the last flow ended or the grace time is over. */
  drain(): void {
    const deadline = after(this.driver.now(), this.config.grace);
    this.pump.direct({ generation: GENERATION, directive: { kind: 'Drain', deadline } });
    this.pump.endTurn();
  }

  /** Hard stop: closes everything now. */
  stop(): void {
    this.pump.direct({ generation: GENERATION, directive: { kind: 'Stop' } });
    this.pump.endTurn();
  }

  get flowCount(): number {
    return this.plane.flowCount;
  }

  countersOf(listener: ListenerId): Readonly<ListenerCounters> | undefined {
    return this.plane.countersOf(listener);
  }

  /** The port a listener is bound to: the kernel's choice where the configuration says 0. */
  portOf(listener: ListenerId): number | undefined {
    return this.driver.portOf(listener);
  }

  private onReport(report: Report): void {
    switch (report.kind) {
      case 'ListenerOpened':
        this.log.info({ listener: formatAddress(report.address) }, 'listening');
        break;
      case 'ListenerFailed':
        this.failed.push(report);
        break;
      case 'UpstreamFailed':
        this.logUpstreamFailure(report.errno);
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

/** This machine's addresses as they are at the start. */
function hostAddresses(): Address[] {
  const interfaces = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return interfaces.flatMap(({ address }) => parseIp(address.replace(/%.*$/, ''), 0) ?? []);
}

function randomWord(): number {
  return randomBytes(4).readUInt32LE();
}
