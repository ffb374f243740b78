/**
 * Who asked what, as the hosts of the proxies received it: the address a request came from is the true client's as far as a
 * proxy can know it, whatever NATs and networks did before. Kept for the whole run, because an answer may come at any time.
 */
import { sameAddress, type Address } from '../../../core/address.ts';
import { decodeDgramHeader } from '../../../core/proxy-protocol.ts';
import type { Facts, Hearings } from '../facts.ts';
import { readMessage, type Message } from '../message.ts';
import { addressKey, ipKey, type AddressKey, type PacketFate } from '../packet.ts';
import type { WorldSpec } from '../spec.ts';
import type { Verdicts } from '../verdicts.ts';
import type { Datagram } from '../wire.ts';

/** A request as it reached a proxy. */
export interface Question {
  readonly src: Address;
  readonly dst: Address;
}

const KNOWN = new WeakMap<Verdicts, Asked>();

/** Hearings that begin with what was asked: to be called first by whoever hears packets beside them. */
export type AskedHearings = Hearings & Required<Pick<Hearings, 'Packet'>>;

/**
 * What was asked in a run: whoever asks first for its verdicts feeds it, and all others share it. It hears before `others`, who
 * hear no packets.
 */
export function followQuestions(
  verdicts: Verdicts,
  spec: WorldSpec,
  others: Omit<Hearings, 'Packet' | 'Bound'>,
): { readonly asked: Asked; readonly hearings: AskedHearings } {
  const known = KNOWN.get(verdicts);
  if (known !== undefined)
    return { asked: known, hearings: { ...others, Packet: () => undefined } };
  const asked = new Asked(spec);
  KNOWN.set(verdicts, asked);
  const hearings: AskedHearings = {
    ...others,
    Packet: (fate) => asked.packet(fate),
    Bound: (bound) => asked.bound(bound),
    DataOutput: (put, at) => {
      asked.put(put);
      others.DataOutput?.(put, at);
    },
  };
  return { asked, hearings };
}

export class Asked {
  readonly #proxies: ReadonlySet<AddressKey>;
  readonly #questions = new Map<number, Question[]>();
  /** Where each upstream socket sends from. */
  readonly #locals = new Map<number, AddressKey>();
  /** By the address that requests leave from: the latest one. */
  readonly #latest = new Map<AddressKey, number>();
  readonly #strays = new Set<number>();

  constructor({ proxies }: WorldSpec) {
    this.#proxies = new Set(proxies.flatMap(({ shape }) => shape.addresses.map(ipKey)));
  }

  /** Every copy of a request that reached a proxy; none where it never did. */
  of(message: Message): readonly Question[] {
    return this.#questions.get(keyOf(message)) ?? [];
  }

  /**
   * Whether an answer came to a port that had become another flow's: the kernel gives ports again, and nobody can tell then
   * whose answer it is.
   */
  isStray(message: Message): boolean {
    return this.#strays.has(keyOf(message));
  }

  /** Whether it is one of a proxy's addresses. */
  isProxy(address: Address): boolean {
    return this.#proxies.has(ipKey(address));
  }

  /** A port is another flow's from now on, whatever is still on its way from it. */
  bound({ local, ...of }: Facts['Bound']): void {
    const key = addressKey(local);
    this.#locals.set(socketKey(of), key);
    this.#latest.set(key, NAMELESS);
  }

  /** What an upstream socket is to send is the latest of its port, however late it leaves. */
  put({ process, plane, output }: Facts['DataOutput']): void {
    if (output.kind !== 'SendToBackend') return;
    const local = this.#locals.get(socketKey({ process, plane, socket: output.socket }));
    if (local === undefined) return;
    const message = readMessage(contentOf(output.payload));
    this.#latest.set(local, message?.kind === 'request' ? keyOf(message) : NAMELESS);
  }

  packet({ kind, packet }: PacketFate): void {
    if (packet.kind !== 'datagram') return;
    const { dst } = packet.datagram;
    if (kind === 'delivered' && this.isProxy(dst)) this.#arrived(packet.datagram);
  }

  #arrived({ src, dst, payload }: Datagram): void {
    const message = readMessage(contentOf(payload));
    if (message === undefined) return;
    const key = keyOf(message);
    if (message.kind === 'answer') return this.#answered(dst, key);
    const known = this.#questions.get(key);
    if (known === undefined) this.#questions.set(key, [{ src, dst }]);
    else known.push({ src, dst });
  }

  #answered(dst: Address, key: number): void {
    const latest = this.#latest.get(addressKey(dst));
    if (latest === undefined || latest === key) return;
    const askers = this.#questions.get(latest) ?? [];
    const own = this.#questions.get(key) ?? [];
    const isSame = own.every(({ src }) => askers.some((asker) => sameAddress(src, asker.src)));
    if (!isSame) this.#strays.add(key);
  }
}

/** What follows the headers of proxies: one may be the client of another. */
function contentOf(payload: Uint8Array): Uint8Array {
  const header = decodeDgramHeader(payload);
  if (header.kind !== 'Proxied') return payload;
  return contentOf(payload.subarray(header.payloadOffset));
}

/** More than there are processes in a world, and planes in a process. */
const PROCESSES = 4_096;
const PLANES = 64;

function socketKey({ process, plane, socket }: Omit<Facts['Bound'], 'local'>): number {
  return process + PROCESSES * (plane + PLANES * socket);
}

/** In place of a key: what left last is nobody's request that is known. */
const NAMELESS = -1;

/** A client number has 16 bits and a serial number 32. */
function keyOf({ client, serial }: Message): number {
  return client * 2 ** 32 + serial;
}
