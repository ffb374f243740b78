/**
 * Who asked what, as the hosts of the proxies received it: the address a request came from is the true client's as far as a
 * proxy can know it, whatever NATs and networks did before. Kept for the whole run, because an answer may come at any time.
 */
import { sameAddress, type Address } from '../../../core/address.ts';
import { decodeDgramHeader } from '../../../core/proxy-protocol.ts';
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

/** What was asked in a run: whoever asks first for its verdicts feeds it, and all others share it. */
export function followQuestions(
  verdicts: Verdicts,
  spec: WorldSpec,
): { readonly asked: Asked; readonly hear: (fate: PacketFate) => void } {
  const known = KNOWN.get(verdicts);
  const asked = known ?? new Asked(spec);
  KNOWN.set(verdicts, asked);
  return { asked, hear: known === undefined ? (fate) => asked.packet(fate) : () => undefined };
}

export class Asked {
  readonly #proxies: ReadonlySet<AddressKey>;
  readonly #questions = new Map<number, Question[]>();
  /** By the address that a request left from: who asked the latest one. */
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

  packet({ kind, packet }: PacketFate): void {
    if (packet.kind !== 'datagram') return;
    const { src, dst } = packet.datagram;
    if (kind === 'delivered' && this.isProxy(dst)) this.#arrived(packet.datagram);
    else if (kind === 'sent' && !packet.raw && this.isProxy(src)) this.#left(packet.datagram);
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

  #left({ src, payload }: Datagram): void {
    const message = readMessage(contentOf(payload));
    if (message === undefined) this.#latest.set(addressKey(src), NAMELESS);
    else if (message.kind === 'request') this.#latest.set(addressKey(src), keyOf(message));
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

/** In place of a key: what left last is nobody's request that is known. */
const NAMELESS = -1;

/** A client number has 16 bits and a serial number 32. */
function keyOf({ client, serial }: Message): number {
  return client * 2 ** 32 + serial;
}
