/**
 * What may become of a client datagram, by what the plane was told and by the flows it has: the decision order of spec §2.2,
 * written down again from the outside. Where only a rate could tell, both outcomes are expected: the buckets of sources are
 * sketches that strangers may share, so that a refusal can be excluded only where no rate is set.
 */
import { isUnanswerable, isUnspecified, type Address } from '../../../core/address.ts';
import type { ClusterSettings } from '../../../core/config.ts';
import type { Fate } from '../../../core/contract.ts';
import { SIGNATURE } from '../../../core/proxy-protocol.ts';
import { addressKey, type AddressKey } from '../packet.ts';
import type { DropCounter, Line } from './parcel.ts';
import { isCrowded, isDenied, type ToldListener, type ToldPlane } from './told-plane.ts';

/** Why no flow can have a socket at present, as far as failures of opens tell. */
export interface Lacks {
  readonly descriptors: boolean;
  readonly ports: boolean;
}

export interface ClientArrival {
  readonly listener: ToldListener;
  readonly src: Address;
  readonly local: Address | undefined;
  readonly payload: Uint8Array;
}

export interface Expectation {
  /** Whether it may go on. */
  readonly goes: boolean;
  /** Counters of which one may have it instead. */
  readonly drops: readonly DropCounter[];
  /** Counted beside an invalid one. */
  readonly beside: 'loopsRefused' | 'headersRefused' | undefined;
  /** The live flow of its client. */
  readonly known: Line | undefined;
  /** What becomes of that. */
  readonly fate: Fate;
}

/** By which a listener knows a flow of this client. */
export function flowKey(
  { config }: ToldListener,
  src: Address,
  local: Address | undefined,
): AddressKey {
  if (local === undefined || !isUnspecified(config.address)) return addressKey(src);
  return `${addressKey(src)} at ${addressKey(local)}`;
}

export function expect(plane: ToldPlane, arrival: ClientArrival, lacks: Lacks): Expectation {
  const { listener, src, local, payload } = arrival;
  const cluster = plane.clusterOf(listener);
  if (payload.length > listener.config.maxRxDatagramSize) return dropped('droppedTruncated');
  if (cluster === undefined) return dropped('droppedNoBackend');
  const known = listener.flows.get(flowKey(listener, src, local));
  const isInvalid = payload.length === 0 && known?.terms.forwardEmptyDatagrams !== true;
  if (isInvalid || isUnanswerable(src)) return dropped('droppedInvalid');
  if (isDenied(cluster.settings, src)) return dropped('droppedDenied');
  if (known === undefined) return ofStranger(plane, arrival, lacks);
  return ofKnown(plane, arrival, lacks, known);
}

function ofKnown(plane: ToldPlane, arrival: ClientArrival, lacks: Lacks, known: Line): Expectation {
  const { listener, payload } = arrival;
  if (refusesHeaders(known.terms) && beginsLikeHeader(payload))
    return { ...dropped('droppedInvalid', 'headersRefused'), known };
  const { datagramsPerSecond, datagramsBurst } = known.terms.rates;
  // A flow that has not spent its burst cannot be too fast.
  const isLimited = datagramsPerSecond !== 0 && known.requests >= Math.max(1, datagramsBurst);
  const drops: readonly DropCounter[] = isLimited ? ['droppedDatagramRate'] : NONE;
  const fate = known.cluster.fateOf(known.backend);
  if (fate === 'close') {
    const rest: Expectation =
      payload.length === 0 ? dropped('droppedInvalid') : ofStranger(plane, arrival, lacks, known);
    return { ...rest, drops: [...new Set([...drops, ...rest.drops])], known, fate };
  }
  if (fate === 'rebind' && plane.clusterOf(listener)?.serves !== true)
    return { ...dropped('droppedNoBackend'), drops: [...drops, 'droppedNoBackend'], known, fate };
  return { goes: true, drops, beside: undefined, known, fate };
}

/** `leaving`: the flow that it had, which closes first. */
function ofStranger(
  plane: ToldPlane,
  { listener, src, local }: ClientArrival,
  lacks: Lacks,
  leaving?: Line,
): Expectation {
  const cluster = plane.clusterOf(listener);
  if (cluster === undefined) return dropped('droppedNoBackend');
  if (plane.circles(src, local, cluster)) return dropped('droppedInvalid', 'loopsRefused');
  const drops = doubtsOf(cluster.settings, lacks);
  const flows = listener.lines.size - (leaving === undefined ? 0 : 1);
  const isFull = flows >= listener.config.maxFlows;
  const isShed =
    listener.isDraining || isFull || isCrowded(listener, cluster.settings, src, leaving);
  const goes = !isShed && cluster.serves;
  if (!goes) drops.push(isShed ? 'droppedShed' : 'droppedNoBackend');
  const distinct = drops.length < 2 ? drops : [...new Set(drops)];
  return { goes, drops: distinct, beside: undefined, known: undefined, fate: 'keep' };
}

/** Why a stranger may be refused, or not. */
function doubtsOf({ rates }: ClusterSettings, lacks: Lacks): DropCounter[] {
  const doubts: DropCounter[] = [];
  if (lacks.descriptors) doubts.push('droppedShed');
  if (lacks.ports) doubts.push('droppedPortExhausted');
  if (rates.newFlowsPerSecond !== 0) doubts.push('droppedNewFlowRate');
  if (rates.datagramsPerSecond !== 0) doubts.push('droppedDatagramRate');
  return doubts;
}

const NONE: readonly DropCounter[] = [];

function dropped(counter: DropCounter, beside?: Expectation['beside']): Expectation {
  return { goes: false, drops: [counter], beside, known: undefined, fate: 'keep' };
}

/** Where only the first datagram bears our header, a later one that begins like one might be believed. */
function refusesHeaders({
  sendProxyProtocol,
  proxyProtocolEveryDatagram,
  rejectClientHeader,
}: ClusterSettings): boolean {
  return sendProxyProtocol && !proxyProtocolEveryDatagram && rejectClientHeader;
}

function beginsLikeHeader(payload: Uint8Array): boolean {
  return payload[0] === SIGNATURE[0] && SIGNATURE.every((byte, at) => payload[at] === byte);
}
