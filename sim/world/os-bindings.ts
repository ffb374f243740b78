/** Which local addresses are taken, and by whom: the kernel's table of bound UDP sockets, and its choice of ports. */
import type { Address } from '../../core/address.ts';
import { ipv4, ipv6, isUnspecified, sameAddress, sameIp } from '../../core/address.ts';
import type { Errno } from '../../core/ports.ts';
import type { Random } from '../random.ts';
import type { Host } from './os-host.ts';

/** Sockets of several threads that are bound to one address (SO_REUSEPORT), and how the kernel chooses among them. */
export interface Sharing {
  /** How many there are to be. */
  readonly count: number;
  /** By a hash of both addresses and ports, or, as a program that was attached says, of where the datagram is from. */
  readonly steer: 'tuple' | 'source';
}

/** Where a socket is bound: an address of the host, or a wildcard. */
export interface Binding {
  readonly local: Address;
  /** Keeps IPv4 off `::`. */
  readonly ipv6Only: boolean;
  /** Others of the same kind may have the same address. */
  readonly sharing?: Sharing | undefined;
}

/** Whether a datagram to `address` is for this binding. */
export function covers(binding: Binding, address: Address): boolean {
  return binding.local.port === address.port && coversIp(binding, address);
}

/** Whether it would be at the right port. */
function coversIp({ local, ipv6Only }: Binding, address: Address): boolean {
  if (!isUnspecified(local)) return sameIp(local, address);
  return local.family === address.family || (local.family === 6 && !ipv6Only);
}

/** The wildcard, at a port that the kernel chooses. */
export function anywhere(family: 4 | 6): Address {
  return family === 4 ? ipv4(0, 0) : ipv6([0, 0, 0, 0], 0);
}

export class Bindings<Owner extends Binding> {
  readonly #host: Host;
  readonly #ports: Random;
  readonly #byPort = new Map<number, Owner[]>();

  constructor(host: Host) {
    this.#host = host;
    this.#ports = host.stream('values', 'ports');
  }

  /** Whether `wanted` can be had; with port 0, at which port. Nothing is taken before `add`. */
  choose(wanted: Binding): Address | Errno {
    const { local } = wanted;
    if (!isUnspecified(local) && !this.#isHere(local)) return 'EADDRNOTAVAIL';
    if (local.port === 0) return this.#choosePort(wanted);
    return this.#isFree(wanted) ? local : 'EADDRINUSE';
  }

  add(owner: Owner): void {
    const { port } = owner.local;
    const owners = this.#byPort.get(port);
    if (owners === undefined) this.#byPort.set(port, [owner]);
    else owners.push(owner);
  }

  /** Among those that share an address the last moves into its place, as in Linux. */
  remove(owner: Owner): void {
    const { port } = owner.local;
    const owners = this.#byPort.get(port) ?? [];
    const last = owners.findLast((one) => one === owner || areSharing(one, owner)) ?? owner;
    const others = owners.filter((one) => one !== last).map((one) => (one === owner ? last : one));
    if (others.length > 0) this.#byPort.set(port, others);
    else this.#byPort.delete(port);
  }

  /** Who is bound where `address` leads. */
  at(address: Address): Owner | undefined {
    return this.#byPort.get(address.port)?.find((one) => covers(one, address));
  }

  /** Who hears what comes from `src` to `dst`: of those that share the address, one and always the same while they do. */
  receiver(src: Address, dst: Address): Owner | undefined {
    const first = this.at(dst);
    if (first?.sharing === undefined) return first;
    const group = (this.#byPort.get(dst.port) ?? []).filter(
      (one) => one === first || areSharing(one, first),
    );
    return group[placeOf(first.sharing, group.length, src, dst)];
  }

  /** The address of this host that datagrams to this family leave from. */
  sourceFor(family: 4 | 6): Address | undefined {
    return this.#host.shape.addresses.find((one) => one.family === family && this.#isHere(one));
  }

  /** Every address with port at which this binding is reached. */
  reachedAt(binding: Binding): Address[] {
    const { port } = binding.local;
    const here = this.#host.shape.addresses.filter((address) => coversIp(binding, address));
    return here.map((address) => ({ ...address, port }));
  }

  #isHere(address: Address): boolean {
    const { shape, faults } = this.#host;
    const isSame = (one: Address): boolean => sameIp(one, address);
    return shape.addresses.some(isSame) && !faults.absent.some(isSame);
  }

  /** As a kernel does it: a random one first, then upwards from there, once around. */
  #choosePort(wanted: Binding): Address | Errno {
    const { shape, faults } = this.#host;
    const { low, high } = shape.ephemeralPorts;
    const count = Math.min(high - low + 1, faults.ephemeralPorts ?? Infinity);
    if (count < 1) return 'EADDRINUSE';
    const first = this.#ports.choose('os.port', count);
    for (let tried = 0; tried < count; tried++) {
      const local = { ...wanted.local, port: low + ((first + tried) % count) };
      if (this.#isFree({ local, ipv6Only: wanted.ipv6Only })) return local;
    }
    return 'EADDRINUSE';
  }

  #isFree(wanted: Binding): boolean {
    const { port } = wanted.local;
    const isForeign = this.#host.faults.occupied.some(
      (local) => local.port === port && collide(wanted, { local, ipv6Only: false }),
    );
    return (
      !isForeign &&
      !this.#byPort.get(port)?.some((one) => collide(wanted, one) && !areSharing(wanted, one))
    );
  }
}

/** A wildcard collides with every address it covers, and either may be the wildcard. */
function collide(one: Binding, other: Binding): boolean {
  return (
    sameAddress(one.local, other.local) || covers(one, other.local) || covers(other, one.local)
  );
}

/** Whether they are of one group: each says so, and they are bound alike. */
function areSharing(one: Binding, other: Binding): boolean {
  return (
    one.sharing !== undefined &&
    other.sharing !== undefined &&
    one.ipv6Only === other.ipv6Only &&
    sameAddress(one.local, other.local)
  );
}

/** Which of so many a datagram goes to. A place that a program names and nobody has is the kernel's to choose. */
function placeOf({ count, steer }: Sharing, size: number, src: Address, dst: Address): number {
  const bySource = hashOf([src.a, src.b, src.c, src.d]) % count;
  if (steer === 'source' && bySource < size) return bySource;
  const words = [src.a, src.b, src.c, src.d, src.port, dst.a, dst.b, dst.c, dst.d, dst.port];
  return Math.floor((hashOf(words) / 2 ** 32) * size);
}

function hashOf(words: readonly number[]): number {
  let hash = 0x811c9dc5;
  for (const word of words) {
    hash = Math.imul(hash ^ word, 0x9e3779b1);
    hash ^= hash >>> 15;
  }
  return hash >>> 0;
}
