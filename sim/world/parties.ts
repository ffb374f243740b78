/**
 * Those whom a proxy serves: clients with a socket each, and backends. What a client says is an action; what a backend does
 * with a datagram follows from its manner, so that a script needs no word of it.
 */
import type { Address } from '../../core/address.ts';
import { decodeDgramHeader } from '../../core/proxy-protocol.ts';
import { after, microseconds } from '../../core/time.ts';
import type { FactHub } from './facts.ts';
import { MESSAGE_BYTES_MIN, readMessage, writeMessage, type Message } from './message.ts';
import type { WorldTime } from './os-host.ts';
import type { BackendManner, BackendSpec, ClientSpec } from './spec.ts';
import type { Datagram, Endpoint, Wire } from './wire.ts';

/** What a client hears. */
export interface Heard {
  readonly from: Address;
  readonly message: Message | undefined;
}

export class Client implements Endpoint {
  readonly number: number;
  readonly spec: ClientSpec;
  /** Told of what it hears. */
  heard: (heard: Heard) => void = () => undefined;
  readonly #time: WorldTime;
  readonly #wire: Wire;
  readonly #hub: FactHub;
  #local: Address;
  #serial = 0;

  constructor(number: number, spec: ClientSpec, time: WorldTime, wire: Wire, hub: FactHub) {
    this.number = number;
    this.spec = spec;
    this.#time = time;
    this.#wire = wire;
    this.#hub = hub;
    this.#local = spec.address;
    wire.attach(this.#local, this);
  }

  /** Its socket's address, before any NAT. */
  get local(): Address {
    return this.#local;
  }

  /** The number of the request that it sent last. */
  get serial(): number {
    return this.#serial;
  }

  /** With fewer bytes than a message has the datagram is of zeros, and its answer tells nothing. */
  send(dst: Address, bytes: number): void {
    const { number: client } = this;
    let message: Message | undefined;
    if (bytes >= MESSAGE_BYTES_MIN) {
      this.#serial += 1;
      message = { kind: 'request', client, serial: this.#serial, backend: 0, copy: 0 };
    }
    const payload = message === undefined ? new Uint8Array(bytes) : writeMessage(message, bytes);
    const src = this.#local;
    this.#hub.tell('ClientSent', { client, src, dst, bytes, message }, this.#time.clock.now());
    this.#wire.send({ src, dst, payload });
  }

  /** Another port; each a prime apart, so that they do not meet soon. */
  reopen(): void {
    this.#wire.detach(this.#local);
    const { port } = this.#local;
    this.#local = { ...this.#local, port: 1_024 + ((port - 1_024 + PORT_STEP) % PORTS) };
    this.#wire.attach(this.#local, this);
  }

  deliver({ src: from, payload }: Datagram): void {
    const message = readMessage(payload);
    const { number: client } = this;
    this.#hub.tell(
      'ClientHeard',
      { client, local: this.#local, from, bytes: payload.length, message },
      this.#time.clock.now(),
    );
    this.heard({ from, message });
  }

  unreachable(): void {
    // It asks from a socket that is not connected, which hears of no refusal.
  }
}

const PORT_STEP = 7_919;
const PORTS = 30_000;

export class BackendServer implements Endpoint {
  readonly number: number;
  readonly address: Address;
  readonly #initial: BackendManner;
  readonly #time: WorldTime;
  readonly #wire: Wire;
  readonly #hub: FactHub;
  #manner: BackendManner;
  /** Where answers come from that come from elsewhere. */
  readonly #elsewhere: Address;

  constructor(number: number, spec: BackendSpec, time: WorldTime, wire: Wire, hub: FactHub) {
    this.number = number;
    this.address = spec.address;
    this.#elsewhere = { ...spec.address, port: spec.address.port + 1 };
    this.#initial = spec.manner;
    this.#manner = spec.manner;
    this.#time = time;
    this.#wire = wire;
    this.#hub = hub;
    if (spec.manner.open) this.#open();
  }

  get manner(): BackendManner {
    return this.#manner;
  }

  behave(manner: Partial<BackendManner>): void {
    const before = this.#manner;
    this.#manner = { ...before, ...manner };
    if (before.open && !this.#manner.open) this.#close();
    else if (!before.open && this.#manner.open) this.#open();
  }

  /** As it was in the beginning. */
  heal(): void {
    this.behave(this.#initial);
  }

  deliver({ src: from, dst, payload }: Datagram): void {
    const header = decodeDgramHeader(payload);
    const offset =
      header.kind === 'NotProxied' || header.kind === 'Malformed' ? 0 : header.payloadOffset;
    const content = offset === 0 ? payload : payload.subarray(offset);
    const message = readMessage(content);
    const { number: backend } = this;
    const heard = { backend, from, header, bytes: content.length, message };
    this.#hub.tell('BackendHeard', heard, this.#time.clock.now());
    if (dst.port !== this.address.port) return;
    const { answers, delay } = this.#manner;
    for (let copy = 0; copy < answers; copy++) {
      if (delay === 0 && copy === 0)
        this.#soon(1, () => this.#answer(from, content, message, copy));
      else this.#soon(delay + 1 + copy * 50, () => this.#answer(from, content, message, copy));
    }
  }

  unreachable(): void {
    // As a client's.
  }

  #answer(to: Address, content: Uint8Array, asked: Message | undefined, copy: number): void {
    const { open, elsewhere, answerBytes } = this.#manner;
    if (!open) return;
    const from = elsewhere ? this.#elsewhere : this.address;
    const message: Message | undefined =
      asked?.kind === 'request'
        ? { ...asked, kind: 'answer', backend: this.number, copy }
        : undefined;
    const bytes = answerBytes === 0 ? content.length : answerBytes;
    const payload = message === undefined ? content : writeMessage(message, bytes);
    const sent = { backend: this.number, from, to, bytes: payload.length, message };
    this.#hub.tell('BackendSent', sent, this.#time.clock.now());
    this.#wire.send({ src: from, dst: to, payload });
  }

  #soon(delay: number, action: () => void): void {
    const { clock, events } = this.#time;
    events.push(after(clock.now(), microseconds(delay)), action);
  }

  #open(): void {
    this.#wire.attach(this.address, this);
    this.#wire.attach(this.#elsewhere, this);
  }

  #close(): void {
    this.#wire.detach(this.address);
    this.#wire.detach(this.#elsewhere);
  }
}
