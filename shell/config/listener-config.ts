/** What the table of a listener means, in the core's units. */
import { unmap } from '../../core/address.ts';
import { clampMaxRx, effectiveMaxFlows, type ListenerConfig } from '../../core/config.ts';
import { DATAGRAM_BYTES_MAX } from '../../core/contract.ts';
import { seconds, type Duration } from '../../core/time.ts';
import type { ListenerTable } from './schema.ts';

/** What bounds a listener from outside its table. */
export interface ListenerBounds {
  /** Of this process; undefined where it is not known. */
  readonly descriptorLimit: number | undefined;
  /** The global keys `max_connections` and `buffer_size`. */
  readonly maxConnections: number;
  readonly bufferSize: number;
}

/** The checked table as the core's configuration. `place`: what other tables say of this listener. */
export function listenerConfig(
  table: ListenerTable,
  { descriptorLimit, maxConnections, bufferSize }: ListenerBounds,
  place: Pick<ListenerConfig, 'ipv6Only' | 'cluster'>,
): ListenerConfig {
  const maxRx = clampMaxRx(table.max_rx_datagram_size, bufferSize);
  return {
    address: unmap(table.address),
    frontTimeout: secondsIfWritten(table.front_timeout),
    backTimeout: secondsIfWritten(table.back_timeout),
    maxRxDatagramSize: Math.min(maxRx, DATAGRAM_BYTES_MAX),
    maxFlows: effectiveMaxFlows(table.max_flows, descriptorLimit, maxConnections),
    ...place,
    receiveBuffer: table.rcvbuf,
    sendBuffer: table.sndbuf,
    bindRetry: table.bind_retry_seconds === 0 ? undefined : seconds(table.bind_retry_seconds),
  };
}

function secondsIfWritten(count: number | undefined): Duration | undefined {
  return count === undefined ? undefined : seconds(count);
}
