/** Sockets and counters from /proc/net, as far as a doctor asks. */
import { formatIp, ipv4, ipv6, unmap, type Address } from '../../core/index.ts';

/** A UDP socket of this machine that is connected to nobody. */
export interface OpenSocket {
  readonly address: Address;
  readonly drops: number;
}

/** From /proc/net/udp or udp6. A line that is not understood is left out. */
export function openSockets(text: string): OpenSocket[] {
  return text.split('\n').flatMap((line) => {
    // sl, local_address, rem_address, st, …, drops. State 07 is that of a socket without a peer.
    const words = line.trim().split(/\s+/);
    const [, local = '', , state] = words;
    const address = state === '07' ? addressOf(local) : undefined;
    const drops = Number(words.at(-1));
    return address === undefined || !Number.isInteger(drops) ? [] : [{ address, drops }];
  });
}

/** A counter of /proc/net/snmp by its name there, such as `RcvbufErrors` of `Udp`. */
export function snmpCounter(text: string, protocol: string, name: string): number | undefined {
  const [names = [], values = []] = text
    .split('\n')
    .filter((line) => line.startsWith(`${protocol}:`))
    .map((line) => line.split(/\s+/));
  const value = values[names.indexOf(name)];
  return value === undefined ? undefined : Number(value);
}

/** Whether two sockets cannot have their addresses at one time: the same, or one of them on every address. */
export function collide(one: Address, other: Address): boolean {
  if (one.port !== other.port) return false;
  const [ip, otherIp] = [formatIp(one), formatIp(other)];
  if (ip === otherIp || ip === '::' || otherIp === '::') return true;
  return one.family === other.family && (ip === '0.0.0.0' || otherIp === '0.0.0.0');
}

/** `0100007F:0035`: words of 32 bits in the machine's order, which is little-endian wherever Node runs but on s390x. */
function addressOf(text: string): Address | undefined {
  const [host = '', hexPort = ''] = text.split(':');
  const words = host.match(/.{8}/g)?.map(hostWord) ?? [];
  const port = Number.parseInt(hexPort, 16);
  const [a, b, c, d] = words;
  if (!/^[0-9A-F]{4}$/.test(hexPort) || a === undefined) return undefined;
  if (b === undefined || c === undefined || d === undefined) return ipv4(a, port);
  return unmap(ipv6([a, b, c, d], port, 0));
}

function hostWord(hex: string): number {
  return Buffer.from(hex, 'hex').readInt32LE();
}
