/** Which local addresses are taken, and by whom: the kernel's table of bound UDP sockets, and its choice of ports. */
import type { Address } from '../../core/address.ts';
import { ipv4, ipv6, isUnspecified, sameAddress, sameIp } from '../../core/address.ts';
import type { Errno } from '../../core/ports.ts';
import type { Random } from '../random.ts';
import type { Host } from './os-host.ts';

/** Where a socket is bound: an address of the host, or a wildcard. */
export interface Binding {
  readonly local: Address;
  /** Keeps IPv4 off `::`. */
  readonly ipv6Only: boolean;
}

/** Whether a datagram to `address` is for this binding. */
export function covers({ local, ipv6Only }: Binding, address: Address): boolean {
  if (local.port !== address.port) return false;
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

  remove(owner: Owner): void {
    const { port } = owner.local;
    const others = this.#byPort.get(port)?.filter((one) => one !== owner) ?? [];
    if (others.length > 0) this.#byPort.set(port, others);
    else this.#byPort.delete(port);
  }

  /** Who is bound where `address` leads. */
  at(address: Address): Owner | undefined {
    return this.#byPort.get(address.port)?.find((one) => covers(one, address));
  }

  /** The address of this host that datagrams to this family leave from. */
  sourceFor(family: 4 | 6): Address | undefined {
    return this.#host.shape.addresses.find((one) => one.family === family && this.#isHere(one));
  }

  /** Every address with port at which this binding is reached. */
  reachedAt(binding: Binding): Address[] {
    const { port } = binding.local;
    const everywhere = this.#host.shape.addresses.map((address) => ({ ...address, port }));
    return everywhere.filter((address) => covers(binding, address));
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
    return !isForeign && !this.#byPort.get(port)?.some((one) => collide(wanted, one));
  }
}

/** A wildcard collides with every address it covers, and either may be the wildcard. */
function collide(one: Binding, other: Binding): boolean {
  return (
    sameAddress(one.local, other.local) || covers(one, other.local) || covers(other, one.local)
  );
}
