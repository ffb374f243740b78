/**
 * A whole proxy on a troubled simulated host, with a recorder between its machines and their pumps: clients who ask, backends
 * who echo and fail, probes, a reload, and a soft stop at the end.
 */
import type { Address } from '../core/address.ts';
import { present } from '../core/assert.ts';
import { listenerId } from '../core/brand.ts';
import type { Config } from '../core/config.ts';
import { ControlPlane } from '../core/control-plane.ts';
import { ControlPump } from '../core/control-pump.ts';
import { DataPlane } from '../core/data-plane.ts';
import { healthSettings } from '../core/health/settings.ts';
import type { PlaneOptions } from '../core/plane-contract.ts';
import { Pump } from '../core/pump.ts';
import { microseconds, milliseconds } from '../core/time.ts';
import { encodeTrace, type SegmentSource } from '../core/trace.ts';
import type { TraceHeader } from '../core/trace-header.ts';
import { Recorder, type RecorderOptions } from '../core/trace-recorder.ts';
import { SimulatedControl, TcpTargets } from '../sim/world/os-control.ts';
import type { OsFaults } from '../sim/world/os-faults.ts';
import { PlainWorld, type Program } from '../sim/world/plain-world.ts';
import { LOCAL } from './driver-bench.ts';
import { clusterSettings, configOf, listenerConfig } from './plane-bench.ts';

const PLANE: PlaneOptions = {
  placementSeed: { high: 1, low: 2 },
  tableSeed: { first: 3, second: 4 },
  randomSeed: { high: 5, low: 6 },
};

const CONTROL = { randomSeed: { high: 7, low: 8 } };

const FEW = { numerator: 1, denominator: 50 };

const TROUBLE: Partial<OsFaults> = {
  sendRate: 2_000_000,
  sendBuffer: 4_000,
  datagramBytes: 1_400,
  receiveBuffer: 20_000,
  noBuffers: FEW,
  upstreamStalls: { numerator: 1, denominator: 500 },
  lateFailures: FEW,
  refusalDelay: milliseconds(5),
  wakeLatency: microseconds(400),
  timer: { early: milliseconds(1), late: milliseconds(3), tick: milliseconds(1) },
};

export const HEADER: TraceHeader = {
  build: 'test',
  runtime: 'test',
  writtenAt: '2026-01-01T00:00:00.000Z',
  reason: 'request',
  configuration: '# as written',
  plane: PLANE,
  control: CONTROL,
};

export interface RecordedOptions extends Partial<RecorderOptions> {
  readonly seed?: number;
  readonly Plane?: typeof DataPlane;
  readonly Control?: typeof ControlPlane;
  readonly snapshotOf?: (plane: DataPlane, control: ControlPlane) => Uint8Array;
}

export class RecordedWorld {
  readonly world: PlainWorld;
  readonly recorder: Recorder;
  readonly plane: DataPlane;
  readonly control: ControlPlane;
  readonly controlPump: ControlPump;
  private readonly tcp = new TcpTargets(milliseconds(2));
  private readonly backends: readonly Program[];
  private readonly front: Address;
  private hasBegun = false;

  constructor(options: RecordedOptions = {}) {
    const { seed = 1, Plane = DataPlane, Control = ControlPlane } = options;
    this.world = new PlainWorld({ seed, delay: microseconds(150) });
    const { os, kernel } = this.world;
    this.backends = [this.program(), this.program(), this.program()];
    for (const backend of this.backends) {
      backend.heard = ({ from, payload }) => backend.send(from, payload);
      this.tcp.set(backend.address, 'accept');
    }
    this.plane = new Plane(PLANE);
    this.control = new Control(CONTROL);
    this.recorder = new Recorder({
      segmentBytes: options.segmentBytes ?? 1_000_000,
      snapshot:
        options.snapshot ??
        (() => (options.snapshotOf ? options.snapshotOf(this.plane, this.control) : undefined)),
    });
    const pump = new Pump(this.recorder.tapData(this.plane), os, (report) =>
      this.controlPump.report(report),
    );
    os.attach(pump);
    const ports = new SimulatedControl(kernel, this.tcp, () => undefined);
    this.controlPump = new ControlPump(this.recorder.tapControl(this.control), ports, pump);
    ports.attach(this.controlPump);
    this.controlPump.configure(this.config(2, 40));
    const port = present(os.portOf(listenerId(0)), 'the listener is open');
    this.front = { ...LOCAL, port };
  }

  /** The story until then, in milliseconds; all of it unless given. */
  live(until = 3_000): this {
    if (!this.hasBegun) this.begin();
    this.hasBegun = true;
    const { clock } = this.world.time;
    this.world.run(microseconds(milliseconds(until) - clock.now()));
    return this;
  }

  private begin(): void {
    const { host, time } = this.world;
    this.world.fault({ ...TROUBLE, descriptors: 16 });
    const [, backend] = this.backends;
    const at = (when: number, action: () => void): void =>
      void host.later(milliseconds(when), action);
    at(50, () => this.world.fault({ descriptors: undefined, ephemeralPorts: 12 }));
    at(100, () => this.world.fault({ ephemeralPorts: undefined }));
    at(300, () => backend?.close());
    at(300, () => backend && this.tcp.set(backend.address, 'refuse'));
    at(400, () => this.world.fault({ sendRate: 0 }));
    at(500, () => this.world.fault({ sendRate: 2_000_000 }));
    at(600, () => backend?.reopen());
    at(650, () => this.controlPump.configure(this.config(3, 60)));
    at(700, () => this.controlPump.command({ kind: 'Status' }));
    at(1_100, () => this.controlPump.drain());
    const workload = time.streams.workload;
    for (let n = 0; n < 40; n += 1) {
      const client = this.program();
      for (let sent = 0; sent < 30; sent += 1) {
        const payload = new Uint8Array(workload.between('size', 1, 1_500)).fill(1 + n + sent);
        at(workload.between('at', 0, 1_200), () => client.send(this.front, payload));
      }
    }
  }

  /** What was recorded so far, as a file. */
  trace(): Uint8Array {
    return traceOf(this.recorder.take().segments);
  }

  private config(backends: number, timeout: number): Config {
    const idle = milliseconds(timeout);
    return configOf(
      [
        clusterSettings({
          backends: this.backends.slice(0, backends).map(({ address }, n) => ({
            id: `b${n}`,
            address,
            weight: 100,
            backup: false,
          })),
          responses: 4,
          sendProxyProtocol: true,
          exchange: 'request-response',
          health: healthSettings({
            probeInterval: milliseconds(40),
            probeTimeout: milliseconds(20),
          }),
        }),
      ],
      [listenerConfig({ address: LOCAL, maxFlows: 64, frontTimeout: idle, backTimeout: idle })],
    );
  }

  private program(): Program {
    return this.world.program(LOCAL);
  }
}

export function traceOf(segments: Iterable<SegmentSource>, header = HEADER): Uint8Array {
  return Uint8Array.from([...encodeTrace(header, segments)].flatMap((block) => [...block]));
}
