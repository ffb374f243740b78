/**
 * The metrics: a catalogue as data, one set of counters per listener, and the fold that keeps them. Counters only grow; what
 * can be derived (active flows, all drops) is derived, so that no two figures can disagree.
 */
import { assertNever } from './assert.ts';
import { countDuration, type DurationCounters } from './flow-durations.ts';
import type { CloseReason, DropReason, MetricEvent, Output } from './contract.ts';

/** What one listener counts. Plain numbers, exact up to 2^53. */
export interface ListenerCounters extends DurationCounters {
  clientReceived: number;
  backendReceived: number;
  datagramsIn: number;
  bytesIn: number;
  datagramsOut: number;
  bytesOut: number;
  forwarded: number;
  returned: number;
  flowsCreated: number;
  flowsEvicted: number;
  flowsShed: number;
  flowsShedSourceLimit: number;
  flowsRebound: number;
  closedIdle: number;
  closedResponses: number;
  closedRequests: number;
  closedDrain: number;
  closedAborted: number;
  closedBackendLost: number;
  closedKilled: number;
  upstreamOpenFailed: number;
  upstreamRefused: number;
  socketsGivenUp: number;
  restarts: number;
  sendFailedLate: number;
  loopsRefused: number;
  headersRefused: number;
  droppedInvalid: number;
  droppedTruncated: number;
  droppedNoBackend: number;
  droppedShed: number;
  droppedUnknownFlow: number;
  droppedWqFull: number;
  droppedSendError: number;
  droppedTooBig: number;
  droppedClosed: number;
  droppedDenied: number;
  droppedNewFlowRate: number;
  droppedDatagramRate: number;
  droppedAmplification: number;
  droppedPortExhausted: number;
}

export interface MetricDescription {
  /** The reference's name where it has one (spec §9). */
  readonly name: string;
  readonly unit: 'datagrams' | 'bytes' | 'flows' | 'events' | 'microseconds';
  readonly origin: 'sozu' | 'ours';
  readonly help: string;
}

export const CATALOGUE: Readonly<Record<keyof ListenerCounters, MetricDescription>> = {
  clientReceived: ours('udp.datagrams.received.client', 'datagrams', 'arrived from clients'),
  backendReceived: ours('udp.datagrams.received.backend', 'datagrams', 'arrived from backends'),
  datagramsIn: sozu('udp.datagrams.in', 'datagrams', 'decided to forward to a backend'),
  bytesIn: sozu('udp.bytes.in', 'bytes', 'payload of those, PROXY headers not included'),
  datagramsOut: sozu('udp.datagrams.out', 'datagrams', 'decided to return to a client'),
  bytesOut: sozu('udp.bytes.out', 'bytes', 'payload of those'),
  forwarded: ours('udp.datagrams.forwarded', 'datagrams', 'handed to the kernel for a backend'),
  returned: ours('udp.datagrams.returned', 'datagrams', 'handed to the kernel for a client'),
  flowsCreated: sozu('udp.flows.created', 'flows', 'admitted'),
  flowsEvicted: sozu('udp.flows.evicted', 'flows', 'closed, for whatever reason'),
  flowsShed: sozu('udp.flows.shed', 'flows', 'refused at the cap, or without an upstream socket'),
  flowsShedSourceLimit: ours('udp.flows.shed.source_limit', 'flows', 'refused by a source limit'),
  flowsRebound: ours('udp.flows.rebound', 'flows', 'that went on with another backend'),
  closedIdle: ours('udp.flows.closed.idle', 'flows', 'closed by their idle time'),
  closedResponses: ours('udp.flows.closed.responses', 'flows', 'closed with their last reply'),
  closedRequests: ours('udp.flows.closed.requests', 'flows', 'closed with their last request'),
  closedDrain: ours('udp.flows.closed.drain', 'flows', 'closed with their listener'),
  closedAborted: ours(
    'udp.flows.closed.aborted',
    'flows',
    'closed for want of a socket, or by a restart',
  ),
  closedBackendLost: ours('udp.flows.closed.backend_lost', 'flows', 'closed with their backend'),
  closedKilled: ours('udp.flows.closed.killed', 'flows', 'closed by an operator'),
  lasted1ms: ours('udp.flow.duration.1ms', 'flows', 'that lasted up to 1 ms'),
  lasted5ms: ours('udp.flow.duration.5ms', 'flows', 'that lasted longer, up to 5 ms'),
  lasted25ms: ours('udp.flow.duration.25ms', 'flows', 'that lasted longer, up to 25 ms'),
  lasted100ms: ours('udp.flow.duration.100ms', 'flows', 'that lasted longer, up to 100 ms'),
  lasted500ms: ours('udp.flow.duration.500ms', 'flows', 'that lasted longer, up to 500 ms'),
  lasted2s: ours('udp.flow.duration.2s', 'flows', 'that lasted longer, up to 2 s'),
  lasted10s: ours('udp.flow.duration.10s', 'flows', 'that lasted longer, up to 10 s'),
  lasted30s: ours('udp.flow.duration.30s', 'flows', 'that lasted longer, up to 30 s'),
  lasted2min: ours('udp.flow.duration.2min', 'flows', 'that lasted longer, up to 2 minutes'),
  lasted10min: ours('udp.flow.duration.10min', 'flows', 'that lasted longer, up to 10 minutes'),
  lasted1h: ours('udp.flow.duration.1h', 'flows', 'that lasted longer, up to an hour'),
  lastedLonger: ours('udp.flow.duration.longer', 'flows', 'that lasted longer'),
  lastedMicroseconds: ours('udp.flow.duration.sum', 'microseconds', 'that flows lasted'),
  upstreamOpenFailed: ours('udp.upstream.open_failed', 'events', 'upstream sockets not opened'),
  upstreamRefused: ours('udp.upstream.refused', 'events', 'refusals (ICMP) seen from backends'),
  socketsGivenUp: ours('udp.sockets.given_up', 'events', 'without room for too long'),
  restarts: ours('udp.listener.restarts', 'events', 'after a bug of ours, without its flows'),
  sendFailedLate: ours('udp.send.failed_late', 'datagrams', 'lost after the kernel took them'),
  loopsRefused: ours(
    'udp.datagrams.loops',
    'datagrams',
    'from ourselves or a backend; Invalid too',
  ),
  headersRefused: ours(
    'udp.datagrams.headers',
    'datagrams',
    'with a PROXY header of their own; Invalid too',
  ),
  droppedInvalid: sozu('udp.datagrams.dropped.invalid', 'datagrams', 'empty, or unanswerable'),
  droppedTruncated: sozu('udp.datagrams.dropped.truncated', 'datagrams', 'over the size limit'),
  droppedNoBackend: sozu('udp.datagrams.dropped.no_backend', 'datagrams', 'nowhere to go'),
  droppedShed: sozu('udp.datagrams.dropped.shed', 'datagrams', 'of a flow that was refused'),
  droppedUnknownFlow: sozu('udp.datagrams.dropped.unknown_flow', 'datagrams', 'of no live flow'),
  droppedWqFull: sozu('udp.datagrams.dropped.wq_full', 'datagrams', 'no room to send'),
  droppedSendError: sozu('udp.datagrams.dropped.send_error', 'datagrams', 'the kernel refused'),
  droppedTooBig: ours(
    'udp.datagrams.dropped.too_big',
    'datagrams',
    'with header or payload above what the path takes',
  ),
  droppedClosed: ours(
    'udp.datagrams.dropped.closed',
    'datagrams',
    'waiting when their socket closed, or the cause of a restart',
  ),
  droppedDenied: ours('udp.datagrams.dropped.denied', 'datagrams', 'from a source kept out'),
  droppedNewFlowRate: ours(
    'udp.datagrams.dropped.new_flow_rate',
    'datagrams',
    'of sources that open flows too fast',
  ),
  droppedDatagramRate: ours(
    'udp.datagrams.dropped.datagram_rate',
    'datagrams',
    'of sources or flows that send too fast',
  ),
  droppedAmplification: ours(
    'udp.datagrams.dropped.amplification',
    'datagrams',
    'replies over what an unproven client may get',
  ),
  droppedPortExhausted: ours(
    'udp.datagrams.dropped.port_exhausted',
    'datagrams',
    'for which no local port was left',
  ),
};

export function newCounters(): ListenerCounters {
  return {
    clientReceived: 0,
    backendReceived: 0,
    datagramsIn: 0,
    bytesIn: 0,
    datagramsOut: 0,
    bytesOut: 0,
    forwarded: 0,
    returned: 0,
    flowsCreated: 0,
    flowsEvicted: 0,
    flowsShed: 0,
    flowsShedSourceLimit: 0,
    flowsRebound: 0,
    closedIdle: 0,
    closedResponses: 0,
    closedRequests: 0,
    closedDrain: 0,
    closedAborted: 0,
    closedBackendLost: 0,
    closedKilled: 0,
    lasted1ms: 0,
    lasted5ms: 0,
    lasted25ms: 0,
    lasted100ms: 0,
    lasted500ms: 0,
    lasted2s: 0,
    lasted10s: 0,
    lasted30s: 0,
    lasted2min: 0,
    lasted10min: 0,
    lasted1h: 0,
    lastedLonger: 0,
    lastedMicroseconds: 0,
    upstreamOpenFailed: 0,
    upstreamRefused: 0,
    socketsGivenUp: 0,
    restarts: 0,
    sendFailedLate: 0,
    loopsRefused: 0,
    headersRefused: 0,
    droppedInvalid: 0,
    droppedTruncated: 0,
    droppedNoBackend: 0,
    droppedShed: 0,
    droppedUnknownFlow: 0,
    droppedWqFull: 0,
    droppedSendError: 0,
    droppedTooBig: 0,
    droppedClosed: 0,
    droppedDenied: 0,
    droppedNewFlowRate: 0,
    droppedDatagramRate: 0,
    droppedAmplification: 0,
    droppedPortExhausted: 0,
  };
}

/** Adds what another counted, so that totals outlive a listener. */
export function addCounters(sum: ListenerCounters, other: Readonly<ListenerCounters>): void {
  for (const key of Object.keys(other)) if (isCounter(key)) sum[key] += other[key];
}

function isCounter(key: string): key is keyof ListenerCounters {
  return key in CATALOGUE;
}

/** Adds one output of a flow machine. */
export function foldOutput(counters: ListenerCounters, output: Output): void {
  if (output.kind === 'Metric') foldMetric(counters, output.event);
  else if (output.kind === 'Drop') foldDrop(counters, output.reason);
  else if (output.kind === 'CloseFlow') foldClose(counters, output);
}

/** One that was aborted had no upstream socket, and its duration says nothing. */
function foldClose(
  counters: ListenerCounters,
  { reason, lasted }: Extract<Output, { kind: 'CloseFlow' }>,
): void {
  counters[CLOSED[reason]] += 1;
  if (reason !== 'Aborted') countDuration(counters, lasted);
}

const CLOSED = {
  Idle: 'closedIdle',
  ResponsesReached: 'closedResponses',
  RequestsReached: 'closedRequests',
  Drain: 'closedDrain',
  Aborted: 'closedAborted',
  BackendLost: 'closedBackendLost',
  Killed: 'closedKilled',
} as const satisfies Record<CloseReason, keyof ListenerCounters>;

/** `udp.active_flows`: never below zero, because both sides are counted where they happen. */
export function activeFlows(counters: ListenerCounters): number {
  return counters.flowsCreated - counters.flowsEvicted;
}

/** `udp.datagrams.dropped`: all reasons together, each datagram once. */
export function droppedDatagrams(counters: ListenerCounters): number {
  return (
    counters.droppedInvalid +
    counters.droppedTruncated +
    counters.droppedNoBackend +
    counters.droppedShed +
    counters.droppedUnknownFlow +
    counters.droppedWqFull +
    counters.droppedSendError +
    counters.droppedTooBig +
    counters.droppedClosed +
    counters.droppedDenied +
    counters.droppedNewFlowRate +
    counters.droppedDatagramRate +
    counters.droppedAmplification +
    counters.droppedPortExhausted
  );
}

/** Drops by the last word of each metric's name, as `no_backend`; those that never happened are left out. */
export function dropsByReason(counters: Readonly<ListenerCounters>): Record<string, number> {
  return countsUnder('udp.datagrams.dropped.', counters);
}

/** Closed flows by the last word of each metric's name, as `idle`; together they are the flows evicted. */
export function closesByReason(counters: Readonly<ListenerCounters>): Record<string, number> {
  return countsUnder('udp.flows.closed.', counters);
}

function countsUnder(prefix: string, counters: Readonly<ListenerCounters>): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const [key, { name }] of Object.entries(CATALOGUE)) {
    if (!name.startsWith(prefix) || !isCounter(key) || counters[key] === 0) continue;
    counts[name.slice(prefix.length)] = counters[key];
  }
  return counts;
}

/** Between turns: received, but neither forwarded, returned nor dropped. Over all listeners: what the plane has waiting. */
export function unaccountedDatagrams(counters: ListenerCounters): number {
  const received = counters.clientReceived + counters.backendReceived;
  return received - counters.forwarded - counters.returned - droppedDatagrams(counters);
}

function foldMetric(counters: ListenerCounters, event: MetricEvent): void {
  switch (event.kind) {
    case 'DatagramIn':
      counters.datagramsIn += 1;
      counters.bytesIn += event.bytes;
      break;
    case 'DatagramOut':
      counters.datagramsOut += 1;
      counters.bytesOut += event.bytes;
      break;
    case 'TrainIn':
      counters.datagramsIn += event.datagrams;
      counters.bytesIn += event.bytes;
      break;
    case 'TrainOut':
      counters.datagramsOut += event.datagrams;
      counters.bytesOut += event.bytes;
      break;
    case 'FlowCreated':
      counters.flowsCreated += 1;
      break;
    case 'FlowEvicted':
      counters.flowsEvicted += 1;
      break;
    case 'FlowShed':
      counters.flowsShed += 1;
      break;
    case 'LoopRefused':
      counters.loopsRefused += 1;
      break;
    case 'HeaderRefused':
      counters.headersRefused += 1;
      break;
    case 'FlowShedSourceLimit':
      counters.flowsShedSourceLimit += 1;
      break;
    case 'FlowRebound':
      counters.flowsRebound += 1;
      break;
    default:
      assertNever(event);
  }
}

function foldDrop(counters: ListenerCounters, reason: DropReason): void {
  switch (reason) {
    case 'Invalid':
      counters.droppedInvalid += 1;
      break;
    case 'Truncated':
      counters.droppedTruncated += 1;
      break;
    case 'NoBackend':
      counters.droppedNoBackend += 1;
      break;
    case 'Shed':
      counters.droppedShed += 1;
      break;
    case 'UnknownFlow':
      counters.droppedUnknownFlow += 1;
      break;
    case 'Denied':
      counters.droppedDenied += 1;
      break;
    case 'NewFlowRate':
      counters.droppedNewFlowRate += 1;
      break;
    case 'DatagramRate':
      counters.droppedDatagramRate += 1;
      break;
    case 'Amplification':
      counters.droppedAmplification += 1;
      break;
    case 'PortExhausted':
      counters.droppedPortExhausted += 1;
      break;
    default:
      assertNever(reason);
  }
}

function sozu(name: string, unit: MetricDescription['unit'], help: string): MetricDescription {
  return { name, unit, origin: 'sozu', help };
}

function ours(name: string, unit: MetricDescription['unit'], help: string): MetricDescription {
  return { name, unit, origin: 'ours', help };
}
