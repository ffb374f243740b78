/** Data of a trace without what tells on anybody: addresses and names are others, probes send as many zeros. */
import { AddressDisguise, type Flip } from './address-disguise.ts';
import type { Address } from './address.ts';
import { decodeDgramHeader, dgramHeader } from './proxy-protocol.ts';
import { isAddress } from './trace-shapes.ts';

/** Words of the program, and names it made itself. Any other text is somebody's. */
const OWN_WORDS: ReadonlySet<string> = new Set([
  'errno',
  'exchange',
  'flow',
  'kind',
  'loadBalancing',
  'loadMetric',
  'mode',
  'onBackendDown',
  'onBackendRemoved',
  'state',
]);

export class Disguise {
  private readonly addresses: AddressDisguise;
  private readonly names = new Map<string, string>();

  constructor(flip: Flip) {
    this.addresses = new AddressDisguise(flip);
  }

  address(address: Address): Address {
    return this.addresses.address(address);
  }

  maybe(address: Address | undefined): Address | undefined {
    return address && this.address(address);
  }

  /** A PROXY header as it would be of the other addresses. */
  header(header: Uint8Array | undefined): Uint8Array | undefined {
    if (header === undefined) return undefined;
    const decoded = decodeDgramHeader(header);
    if (decoded.kind !== 'Proxied') return header;
    return dgramHeader(this.address(decoded.source), this.address(decoded.destination));
  }

  /** Any plain data; `key` is that of the table it stands in. */
  value(value: unknown, key = ''): unknown {
    if (typeof value === 'string') return OWN_WORDS.has(key) ? value : this.name(value);
    if (typeof value !== 'object' || value === null) return value;
    if (value instanceof Uint8Array) return new Uint8Array(value.length);
    if (isAddress(value)) return this.address(value);
    if (Array.isArray(value)) return value.map((item: unknown) => this.value(item, key));
    if ('base' in value && isAddress(value.base) && 'bits' in value) {
      const base = this.addresses.block(value.base, Number(value.bits));
      return { ...value, base };
    }
    const entries = Object.entries(value).map(([name, item]): [string, unknown] => {
      return [name, this.value(item, name)];
    });
    return Object.fromEntries(entries);
  }

  private name(name: string): string {
    if (name === '') return name;
    const known = this.names.get(name) ?? `name-${this.names.size + 1}`;
    this.names.set(name, known);
    return known;
  }
}
