/**
 * Between the core's addresses and the strings of node:dgram. A datagram costs one parse, and a reply one look-up here:
 * texts of recent addresses are kept, because building one costs more than everything else a reply needs.
 */
import { networkInterfaces } from 'node:os';
import { formatIp, parseIp, sameIp, toIpv6, unmap, type Address } from '../../core/index.ts';

/** The source of a datagram, unmapped; undefined only if the runtime says something that is no address. */
export function fromRemote(address: string, port: number): Address | undefined {
  const percent = address.indexOf('%');
  if (percent < 0) {
    const parsed = parseIp(address, port);
    return parsed === undefined ? undefined : unmap(parsed);
  }
  const scope = zoneIndex(address.slice(percent + 1));
  const parsed = parseIp(address.slice(0, percent), port);
  return parsed === undefined ? undefined : { ...parsed, scope };
}

/** Texts of addresses as one socket family wants them: IPv4 in mapped form on an IPv6 socket. */
export class AddressTexts {
  private readonly family: 4 | 6;
  private readonly addresses: (Address | undefined)[] = Array.from({ length: 4_096 });
  private readonly texts: string[] = Array.from({ length: 4_096 }, () => '');

  constructor(family: 4 | 6) {
    this.family = family;
  }

  /** The IP of `address` as text. */
  of(address: Address): string {
    const place = placeOf(address);
    const known = this.addresses[place];
    if (known !== undefined && sameIp(known, address)) return this.texts[place] ?? '';
    const text = ipText(this.family === 6 ? toIpv6(address) : address);
    this.addresses[place] = address;
    this.texts[place] = text;
    return text;
  }
}

/** One of 4,096 places: the upper twelve bits of a multiplicative hash. */
function placeOf(address: Address): number {
  return Math.imul(address.a ^ address.c ^ (address.d << 1), 0x9e3779b1) >>> 20;
}

/** The IP of an address as the operating system takes it: a zone by the name of its interface. */
export function ipText(address: Address): string {
  if (address.scope === 0) return formatIp(address);
  const name = zoneName(address.scope) ?? String(address.scope);
  return `${formatIp({ ...address, scope: 0 })}%${name}`;
}

let zones = new Map<string, number>();

/** The index of an interface. The list is read again when a name is new: interfaces come and go. */
function zoneIndex(name: string): number {
  if (/^[0-9]+$/.test(name)) return Number(name);
  if (!zones.has(name)) readZones();
  return zones.get(name) ?? 0;
}

function zoneName(index: number): string | undefined {
  if (![...zones.values()].includes(index)) readZones();
  return [...zones].find(([, zone]) => zone === index)?.[0];
}

function readZones(): void {
  zones = new Map(
    Object.entries(networkInterfaces()).flatMap(([name, addresses]) =>
      (addresses ?? []).flatMap((one): [string, number][] =>
        one.family === 'IPv6' && one.scopeid > 0 ? [[name, one.scopeid]] : [],
      ),
    ),
  );
}
