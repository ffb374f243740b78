/**
 * What a simulated host does for the control plane: health probes, and a timer of its own. Probes take descriptors and ports
 * as flows do. UDP ones go over the wire; of TCP only the handshake is simulated, because a probe wants no more.
 */
import type { Address } from '../../core/address.ts';
import { formatAddress, sameAddress } from '../../core/address.ts';
import { present } from '../../core/assert.ts';
import type { ControlEvent, Probe } from '../../core/control-contract.ts';
import type { ControlPorts, ControlPump } from '../../core/control-pump.ts';
import type { ProbeAnswer, ProbeId } from '../../core/health/probe-contract.ts';
import type { Duration, Instant } from '../../core/time.ts';
import { anywhere } from './os-bindings.ts';
import type { Host } from './os-host.ts';
import type { Kernel, KernelSocket } from './os-kernel.ts';
import { HostTimer } from './os-timer.ts';

/** What a connection meets: somebody who listens, nobody (RST), or silence. */
export type TcpManner = 'accept' | 'refuse' | 'swallow';

/** TCP as far as a probe sees it. */
export interface TcpNetwork {
  /** What a connection to `target` meets that is tried now, and how long the handshake takes. */
  connect(target: Address): { readonly manner: TcpManner; readonly time: Duration };
}

/** A network in which every handshake takes the same time, and whoever was not named refuses. */
export class TcpTargets implements TcpNetwork {
  readonly #time: Duration;
  readonly #manners = new Map<string, TcpManner>();

  constructor(time: Duration) {
    this.#time = time;
  }

  set(target: Address, manner: TcpManner): void {
    this.#manners.set(formatAddress(target), manner);
  }

  connect(target: Address): { readonly manner: TcpManner; readonly time: Duration } {
    return { manner: this.#manners.get(formatAddress(target)) ?? 'refuse', time: this.#time };
  }
}

export class SimulatedControl implements ControlPorts {
  readonly #kernel: Kernel;
  readonly #host: Host;
  readonly #tcp: TcpNetwork;
  readonly #onEvent: (event: ControlEvent) => void;
  readonly #timer: HostTimer;
  /** How to close each probe in flight. */
  readonly #flights = new Map<ProbeId, () => void>();
  #pump: Pick<ControlPump, 'probeAnswered' | 'timer'> | undefined;
  /** What of the kernel's counters is due to probes. */
  readonly traffic = { taken: 0, accepted: 0, failedLate: 0 };

  constructor(kernel: Kernel, tcp: TcpNetwork, onEvent: (event: ControlEvent) => void) {
    this.#kernel = kernel;
    this.#host = kernel.host;
    this.#tcp = tcp;
    this.#onEvent = onEvent;
    this.#timer = new HostTimer(kernel.host, 'control', () => this.#hearing().timer());
  }

  /** Says who hears of answers and of the timer. */
  attach(pump: Pick<ControlPump, 'probeAnswered' | 'timer'>): void {
    this.#pump = pump;
  }

  /** Probes that have neither ended nor been cancelled; each has one descriptor. */
  get inFlight(): number {
    return this.#flights.size;
  }

  /** The process is gone: its probes end without an answer. */
  kill(): void {
    this.wakeAt(undefined);
    for (const probe of this.#flights.keys()) this.cancelProbe(probe);
  }

  now(): Instant {
    return this.#host.now();
  }

  probe(probe: Probe): void {
    if (probe.mode === 'tcp') this.#connect(probe);
    else this.#ask(probe);
  }

  cancelProbe(probe: ProbeId): void {
    const close = this.#flights.get(probe);
    this.#flights.delete(probe);
    close?.();
  }

  wakeAt(at: Instant | undefined): void {
    this.#timer.wakeAt(at);
  }

  event(event: ControlEvent): void {
    this.#onEvent(event);
  }

  #connect({ probe, target }: Probe): void {
    const { descriptors } = this.#kernel;
    const descriptor = descriptors.lowest();
    if (descriptor === undefined) return this.#hearing().probeAnswered(probe, 'not-tried');
    descriptors.take(descriptor, 'stream');
    this.#flights.set(probe, () => descriptors.release(descriptor));
    const { manner, time } = this.#tcp.connect(target);
    if (manner === 'swallow') return undefined;
    const answer = manner === 'accept' ? 'ok' : 'refused';
    this.#host.later(time, () => this.#endSoon(probe, answer));
    return undefined;
  }

  /** Any datagram of the target is an answer. */
  #ask({ probe, target, header, payload }: Probe): void {
    const { socketBuffer } = this.#host.shape;
    const socket = this.#kernel.open({
      local: anywhere(target.family),
      ipv6Only: false,
      peer: target,
      receiveBuffer: socketBuffer,
      sendBuffer: socketBuffer,
      onReady: () => void this.#host.wake(() => this.#look(probe, socket)),
      onLateFailure: () => {
        this.traffic.failedLate += 1;
        this.#endSoon(probe, 'not-tried');
      },
    });
    if (typeof socket === 'string') return this.#hearing().probeAnswered(probe, 'not-tried');
    this.#flights.set(probe, () => this.#kernel.close(socket));
    // The port chosen for us may be the one we ask, while nobody serves it.
    if (sameAddress(socket.local, target)) return this.#end(probe, 'refused');
    const question = present(payload, 'a UDP probe has a payload');
    const errno = this.#kernel.send(socket, header, question);
    if (errno === undefined) this.traffic.accepted += 1;
    else this.#end(probe, errno === 'ECONNREFUSED' ? 'refused' : 'not-tried');
    return undefined;
  }

  #look(probe: ProbeId, socket: KernelSocket | string): void {
    if (typeof socket === 'string') return;
    if (this.#kernel.takeRefusal(socket)) this.#end(probe, 'refused');
    else if (this.#kernel.receive(socket) !== undefined) {
      this.traffic.taken += 1;
      this.#end(probe, 'ok');
    }
  }

  #endSoon(probe: ProbeId, answer: ProbeAnswer): void {
    this.#host.wake(() => this.#end(probe, answer));
  }

  /** The first end of a probe counts. */
  #end(probe: ProbeId, answer: ProbeAnswer): void {
    if (!this.#flights.has(probe)) return;
    this.cancelProbe(probe);
    this.#hearing().probeAnswered(probe, answer);
  }

  #hearing(): Pick<ControlPump, 'probeAnswered' | 'timer'> {
    return present(this.#pump, 'attach() comes before the first probe');
  }
}
