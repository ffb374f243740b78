/**
 * A running configuration as the requests that make it: what `state save` writes and `state load` sends. Order matters: a
 * cluster comes before its backends, a listener on `0.0.0.0` before one on `::` with the same port, for that decides how the
 * latter is bound.
 */
import { formatAddress, type Backend, type ListenerStatus, type Status } from '../../core/index.ts';
import { clusterTable } from '../config/cluster-table.ts';
import type { View } from './views.ts';

/** Requests without their envelope, as they go over the socket. */
export function stateRequests({ listeners, clusters }: Status): View[] {
  const ordered = listeners.toSorted((a, b) => a.config.address.family - b.config.address.family);
  return [
    ...clusters.flatMap(({ settings, backends }) => [
      { command: 'cluster add', cluster: settings.cluster, settings: clusterTable(settings) },
      ...backends.map(({ backend }) => backendRequest(settings.cluster, backend)),
    ]),
    ...ordered.flatMap(listenerRequests),
  ];
}

function listenerRequests({ config, active }: ListenerStatus): View[] {
  const address = formatAddress(config.address);
  return [
    {
      command: 'listener udp add',
      address,
      settings: {
        front_timeout: config.frontTimeout && config.frontTimeout / 1_000_000,
        back_timeout: config.backTimeout && config.backTimeout / 1_000_000,
        max_rx_datagram_size: config.maxRxDatagramSize,
        max_flows: config.maxFlows,
        rcvbuf: config.receiveBuffer,
        sndbuf: config.sendBuffer,
        bind_retry_seconds: (config.bindRetry ?? 0) / 1_000_000,
      },
    },
    ...(config.cluster === undefined
      ? []
      : [{ command: 'frontend udp add', cluster: config.cluster, address }]),
    ...(active ? [{ command: 'listener udp activate', address }] : []),
  ];
}

function backendRequest(cluster: string, { id, address, weight, backup }: Backend): View {
  const backend = { address: formatAddress(address), backend_id: id, weight, backup };
  return { command: 'backend add', cluster, backend };
}
