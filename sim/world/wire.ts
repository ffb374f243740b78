/**
 * The seam between the hosts of a simulated world and the network that joins them. A host knows sockets and nothing of
 * links; a network knows links and nothing of sockets. A wire that delivers at once serves the tests of either.
 */
import type { Address } from '../../core/address.ts';

/** On its way from one socket to another. Addresses are never IPv4-mapped. Nobody writes to `payload`: a copy may share it. */
export interface Datagram {
  readonly src: Address;
  readonly dst: Address;
  readonly payload: Uint8Array;
}

/** What is attached at an address and port. It takes what it is told without a call back into the wire. */
export interface Endpoint {
  deliver(datagram: Datagram): void;
  /** ICMP port unreachable for a datagram that this endpoint had sent: nobody is attached at its `dst`. */
  unreachable(datagram: Datagram): void;
}

/** The network as a host sees it. */
export interface Wire {
  /** `address` with its port; at most one endpoint there. What is sent to it from now on, or arrives, is delivered. */
  attach(address: Address, endpoint: Endpoint): void;
  /** Detaching where nothing is attached does nothing. */
  detach(address: Address): void;
  /** Takes a datagram of the endpoint at its `src`, which need not be attached any more. May deliver within the call. */
  send(datagram: Datagram): void;
}
