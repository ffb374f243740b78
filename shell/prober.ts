/**
 * The sockets of health probes. It performs what the control plane asks for and says how each ended; when a probe is due,
 * how long it may take and what its answer means is decided in the core. Nothing here throws, and a probe that has ended or
 * was cancelled leaves no socket behind.
 */
import type { Socket as UdpSocket } from 'node:dgram';
import { connect, type Socket as TcpSocket } from 'node:net';
import type { Address, Errno, Probe, ProbeAnswer, ProbeId } from '../core/index.ts';
import { ipText } from './drivers/address-text.ts';
import { errnoOf, openConnected } from './drivers/dgram.ts';

export class Prober {
  private readonly onAnswer: (probe: ProbeId, answer: ProbeAnswer) => void;
  /** How to close each probe in flight. */
  private readonly flights = new Map<ProbeId, () => void>();

  /** `onAnswer` is called once for every probe that is not cancelled and gets an answer, perhaps before `start` returns. */
  constructor(onAnswer: (probe: ProbeId, answer: ProbeAnswer) => void) {
    this.onAnswer = onAnswer;
  }

  start(probe: Probe): void {
    if (probe.mode === 'tcp') this.connectTcp(probe);
    else this.askUdp(probe);
  }

  /** Closes the probe's socket; nothing more is heard of it. One that has ended is nobody's. */
  cancel(probe: ProbeId): void {
    const close = this.flights.get(probe);
    this.flights.delete(probe);
    close?.();
  }

  get inFlight(): number {
    return this.flights.size;
  }

  /** Connected is up. A header, if there is one, is all that is ever sent. */
  private connectTcp({ probe, target, header }: Probe): void {
    const socket = connect({ host: ipText(target), port: target.port });
    this.flights.set(probe, () => socket.destroy());
    socket.on('error', (error) => this.end(probe, answerOf(errnoOf(error))));
    socket.once('connect', () => {
      if (isItself(socket, target)) return this.end(probe, 'refused');
      if (header === undefined) return this.end(probe, 'ok');
      // Closed when the kernel has the header.
      this.flights.set(probe, () => undefined);
      this.end(probe, 'ok');
      return socket.end(header, () => socket.destroy());
    });
  }

  /** Any datagram from the backend is up; a refusal is told by ICMP, if at all. */
  private askUdp({ probe, target, header, payload }: Probe): void {
    const socket = openConnected(target);
    if (typeof socket === 'string') return this.onAnswer(probe, 'not-tried');
    this.flights.set(probe, () => socket.close());
    if (isBoundTo(socket, target)) return this.end(probe, 'refused');
    const onError = (error: Error): void => this.end(probe, answerOf(errnoOf(error)));
    socket.on('error', onError);
    socket.once('message', () => this.end(probe, 'ok'));
    socket.send(
      [header, payload].filter((part) => part !== undefined),
      (error) => {
        if (error !== null) onError(error);
      },
    );
  }

  /** The first end of a probe counts. */
  private end(probe: ProbeId, answer: ProbeAnswer): void {
    if (!this.flights.has(probe)) return;
    this.cancel(probe);
    this.onAnswer(probe, answer);
  }
}

/** Trouble of this host's own: no descriptor, no port, no memory, no route, no right. It says nothing about the backend. */
const NOT_TRIED: ReadonlySet<Errno> = new Set([
  'EMFILE',
  'ENFILE',
  'EADDRNOTAVAIL',
  'EADDRINUSE',
  'EAFNOSUPPORT',
  'EAGAIN',
  'ENOBUFS',
  'ENOMEM',
  'ENETDOWN',
  'ENETUNREACH',
  'EACCES',
  'EPERM',
  'EMSGSIZE',
  'EINVAL',
]);

function answerOf(errno: Errno): ProbeAnswer {
  if (errno === 'ECONNREFUSED') return 'refused';
  return NOT_TRIED.has(errno) ? 'not-tried' : 'failed';
}

/**
 * Whether the kernel, choosing a port for us, chose the one we ask: on loopback such a socket talks to itself, which it can
 * only do while nobody serves that port.
 */
function isItself(socket: TcpSocket, target: Address): boolean {
  return socket.localPort === target.port && socket.localAddress === socket.remoteAddress;
}

function isBoundTo(socket: UdpSocket, target: Address): boolean {
  const local = socket.address();
  return local.port === target.port && local.address === socket.remoteAddress().address;
}
