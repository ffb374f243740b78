/**
 * What names a backend, as text that is built once for each object: lists change rarely in production and all the time in
 * the simulator. A memo of a pure function, so nobody can tell that it is shared.
 */
import { formatAddress } from '../address.ts';
import type { Backend } from '../contract.ts';

const addresses = new WeakMap<Backend, string>();
const identities = new WeakMap<Backend, string>();

/** The address: the identity for hashing, health and removal (spec §1.6). */
export function addressName(backend: Backend): string {
  let name = addresses.get(backend);
  if (name === undefined) {
    name = formatAddress(backend.address);
    addresses.set(backend, name);
  }
  return name;
}

/** Id and address name a backend; one with a new weight is still the same (spec §1.6). */
export function backendIdentity(backend: Backend): string {
  let name = identities.get(backend);
  if (name === undefined) {
    name = `${addressName(backend)} ${backend.id}`;
    identities.set(backend, name);
  }
  return name;
}
