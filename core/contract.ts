/**
 * The words that pass in and out of a listener's flow machine, in the vocabulary of the seeds (spec §1.9, §2). Data only.
 * The order of outputs is part of the contract: one first-in first-out queue carries all kinds.
 */
import type { Address } from './address.ts';
import { AMPLIFICATION_OFF, type AmplificationLimits } from './amplification.ts';
import type { FlowId } from './brand.ts';
import type { UdpFlow } from './flow.ts';
import type { Hash64 } from './hash.ts';
import { microseconds, seconds, type Duration, type Instant } from './time.ts';

/** One server that datagrams may go to. Identity for hashing and removal is the address (spec §1.6). */
export interface Backend {
  readonly id: string;
  readonly address: Address;
  /** 0 to 255 from a file, default 100. Below 1 counts as 1 under HRW and Maglev; RANDOM uses it raw. */
  readonly weight: number;
  /** Used only when no other backend is eligible. */
  readonly backup: boolean;
}

/** What the core needs to know of a cluster (spec §1.7). A flow keeps the one it was admitted under. */
export interface ClusterConfig {
  /** Name of the cluster; empty means that the listener leads nowhere. */
  readonly cluster: string;
  /** Whether the source port takes part in choosing a backend. Never part of the flow key. */
  readonly affinityWithPort: boolean;
  /** Close after this many backend datagrams; 0 = unlimited. */
  readonly responses: number;
  /** Close after this many client datagrams; 0 = unlimited. */
  readonly requests: number;
  /** Idle time granted by a client datagram. */
  readonly frontTimeout: Duration;
  /** Idle time granted by a backend datagram. */
  readonly backTimeout: Duration;
  readonly sendProxyProtocol: boolean;
  /** False: only the first datagram of a flow carries the header. */
  readonly proxyProtocolEveryDatagram: boolean;
  /** Where only the first datagram carries our header: refuse a later client datagram that begins like one. */
  readonly rejectClientHeader: boolean;
  /** Live flows per client address; 0 = unlimited. */
  readonly maxFlowsPerIp: number;
  /** Live flows per client subnet; 0 = unlimited. */
  readonly maxFlowsPerSubnet: number;
  /** Length of a subnet prefix in bits, IPv4 0 to 32 and IPv6 0 to 128. */
  readonly subnetPrefixIpv4: number;
  readonly subnetPrefixIpv6: number;
  /** `responses` are those of each client datagram: an A and an AAAA from one socket both get theirs. */
  readonly responsesPerRequest: boolean;
  /** At the `requests` cap a flow keeps its way back until the replies came or its idle time passed. */
  readonly requestsLinger: boolean;
  /** How long a flow that has all its replies still returns late ones; 0 = not at all. */
  readonly lateReplyGrace: Duration;
  /** An empty client datagram on a live flow is forwarded; it never opens one. */
  readonly forwardEmptyDatagrams: boolean;
  /** Client datagrams that one flow may send each second, and at once; 0 = unlimited. */
  readonly datagramsPerSecond: number;
  readonly datagramsBurst: number;
  /** What a flow may be answered before its client spoke twice. */
  readonly amplification: AmplificationLimits;
}

/**
 * Why a source may not open a flow now: its answers would come back to us, its rates are spent, or the machine has no socket
 * for it at present.
 */
export type Refusal = 'Loop' | 'NewFlowRate' | 'DatagramRate' | 'NoDescriptor' | 'PortExhausted';

/** What becomes of a live flow on its next client datagram, by the state of its backend. */
export type Fate = 'keep' | 'rebind' | 'close';

/** A selection view: lent for one call, never kept. */
export interface BackendSource {
  /** The backend for a new flow with this affinity key, or undefined when none can serve. */
  select(key: Hash64, now: Instant): Backend | undefined;
  /** Whether an operator keeps this source out; asked for every client datagram. */
  denies?(src: Address): boolean;
  /** Asked once for a client without a flow, before one is admitted. What it grants it has spent. */
  refuses?(src: Address, local: Address | undefined, now: Instant): Refusal | undefined;
  /** Asked for every client datagram of a live flow: `backend` is the one that flow is on. */
  fateOf?(backend: Backend): Fate;
}

export type ConfigEvent =
  | { readonly kind: 'SetCluster'; readonly config: ClusterConfig }
  | { readonly kind: 'SetMaxFlows'; readonly count: number }
  | { readonly kind: 'SetMaxRxDatagramSize'; readonly bytes: number }
  /** Tell the end of one flow in so many; 0 = of none. */
  | { readonly kind: 'TellEnds'; readonly oneIn: number }
  | { readonly kind: 'Drain' };

/** Datagrams that came as one piece (train.ts): `unit` bytes each, and the last perhaps fewer. */
export type ManagerTrain =
  | {
      readonly kind: 'ClientTrain';
      readonly src: Address;
      readonly local: Address | undefined;
      readonly payload: Uint8Array;
      readonly unit: number;
      readonly backends: BackendSource;
    }
  | {
      readonly kind: 'BackendTrain';
      readonly flow: FlowId;
      readonly payload: Uint8Array;
      readonly unit: number;
    };

export type ManagerInput =
  | {
      readonly kind: 'ClientDatagram';
      readonly src: Address;
      /** The address the client sent to, where the driver knows it; part of the flow key on a wildcard listener. */
      readonly local?: Address | undefined;
      readonly payload: Uint8Array;
      readonly backends: BackendSource;
    }
  | { readonly kind: 'BackendDatagram'; readonly flow: FlowId; readonly payload: Uint8Array }
  | { readonly kind: 'Config'; readonly event: ConfigEvent };

/** Why a datagram was not forwarded (spec §2.12). One drop is one event, counted once. */
export type DropReason =
  | 'Truncated'
  | 'NoBackend'
  | 'Invalid'
  | 'Shed'
  | 'UnknownFlow'
  /** By an operator's list of addresses. */
  | 'Denied'
  /** The source opens flows too fast. */
  | 'NewFlowRate'
  /** The source, or the flow, sends too fast. */
  | 'DatagramRate'
  /** A reply over what an unproven client may be sent. */
  | 'Amplification'
  /** No local port is left for an upstream socket. */
  | 'PortExhausted';

export type CloseReason =
  | 'Idle'
  | 'ResponsesReached'
  | 'RequestsReached'
  | 'Drain'
  | 'Aborted'
  /** Its backend is down or gone, and the cluster closes such flows. */
  | 'BackendLost'
  /** By an operator. */
  | 'Killed';

export type MetricEvent =
  | { readonly kind: 'FlowCreated' }
  | { readonly kind: 'FlowEvicted' }
  | { readonly kind: 'FlowShed' }
  | { readonly kind: 'FlowShedSourceLimit' }
  /** A live flow goes on with another backend; OpenUpstream follows. */
  | { readonly kind: 'FlowRebound' }
  /** A client datagram that begins like a PROXY header; a Drop of Invalid follows. */
  | { readonly kind: 'HeaderRefused' }
  /** A client datagram that would circle; a Drop of Invalid follows. */
  | { readonly kind: 'LoopRefused' }
  /** Payload bytes, the PROXY header not included. */
  | { readonly kind: 'DatagramIn'; readonly bytes: number }
  | { readonly kind: 'DatagramOut'; readonly bytes: number }
  /** The same of all datagrams of a train together. */
  | { readonly kind: 'TrainIn'; readonly datagrams: number; readonly bytes: number }
  | { readonly kind: 'TrainOut'; readonly datagrams: number; readonly bytes: number };

export type Output =
  | { readonly kind: 'OpenUpstream'; readonly flow: FlowId; readonly backend: Backend }
  | {
      readonly kind: 'SendToBackend';
      readonly flow: FlowId;
      readonly dst: Address;
      /** A PROXY protocol header to put before the payload in the same datagram. Never written to again. */
      readonly prefix: Uint8Array | undefined;
      /** Borrowed: valid until the turn is over. */
      readonly payload: Uint8Array;
    }
  | {
      readonly kind: 'SendToClient';
      readonly flow: FlowId;
      readonly dst: Address;
      /** The address to answer from, on a wildcard listener whose driver knows it. */
      readonly from: Address | undefined;
      /** Borrowed: valid until the turn is over. */
      readonly payload: Uint8Array;
    }
  /** What came as a train goes on as one: without a header, because each datagram would need its own. */
  | {
      readonly kind: 'TrainToBackend';
      readonly flow: FlowId;
      readonly dst: Address;
      /** Borrowed: valid until the turn is over. */
      readonly payload: Uint8Array;
      readonly unit: number;
    }
  | {
      readonly kind: 'TrainToClient';
      readonly flow: FlowId;
      readonly dst: Address;
      readonly from: Address | undefined;
      /** Borrowed: valid until the turn is over. */
      readonly payload: Uint8Array;
      readonly unit: number;
    }
  | { readonly kind: 'ArmTimer'; readonly at: Instant }
  | { readonly kind: 'Metric'; readonly event: MetricEvent }
  | {
      readonly kind: 'CloseFlow';
      readonly flow: FlowId;
      readonly reason: CloseReason;
      /** Since its admission. */
      readonly lasted: Duration;
      /** What was known of it, if its end is to be told (TellEnds). */
      readonly was?: UdpFlow | undefined;
    }
  | { readonly kind: 'Drop'; readonly reason: DropReason };

/** The largest payload a UDP datagram can carry over IPv4 (RFC 768, RFC 791). */
export const DATAGRAM_BYTES_MAX = 65_507;

/** What a flow machine does before it was given a cluster (spec §1.7). */
export const NO_CLUSTER: ClusterConfig = {
  cluster: '',
  affinityWithPort: false,
  responses: 0,
  requests: 0,
  frontTimeout: seconds(30),
  backTimeout: seconds(30),
  sendProxyProtocol: false,
  proxyProtocolEveryDatagram: false,
  rejectClientHeader: true,
  maxFlowsPerIp: 0,
  maxFlowsPerSubnet: 0,
  subnetPrefixIpv4: 24,
  subnetPrefixIpv6: 64,
  responsesPerRequest: false,
  requestsLinger: false,
  lateReplyGrace: microseconds(0),
  forwardEmptyDatagrams: false,
  datagramsPerSecond: 0,
  datagramsBurst: 0,
  amplification: AMPLIFICATION_OFF,
};
