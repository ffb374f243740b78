/** Requests that change something, as commands of the core: checked tables become configurations, names stay names. */
import {
  assertNever,
  ipv4,
  isUnspecified,
  milliseconds,
  sameAddress,
  unmap,
  type Address,
  type Command,
  type Status,
} from '../../core/index.ts';
import { backendOf } from '../config/cluster-settings.ts';
import type { ListenerBounds } from '../config/listener-config.ts';
import type { BackendTable } from '../config/schema.ts';
import { clusterOf, listenerOf, listenerPatch } from '../config/settings.ts';
import type { Configuring, OfBackend } from './requests.ts';

/** `status` is what the command will meet: what a request leaves out is taken from there. */
export function coreCommand(request: Configuring, status: Status, bounds: ListenerBounds): Command {
  switch (request.command) {
    case 'listener udp add': {
      const { address, settings } = request;
      const config = listenerOf(address, settings, bounds, hasIpv4Twin(address, status));
      return { kind: 'AddListener', config };
    }
    case 'listener udp update': {
      const patch = listenerPatch(request.settings, bounds);
      return { kind: 'UpdateListener', address: request.address, patch };
    }
    case 'listener udp remove':
      return { kind: 'RemoveListener', address: request.address };
    case 'listener udp deactivate':
      return { kind: 'DeactivateListener', address: request.address };
    case 'frontend udp add':
      return { kind: 'AddFrontend', cluster: request.cluster, address: request.address };
    case 'frontend udp remove':
      return { kind: 'RemoveFrontend', cluster: request.cluster, address: request.address };
    case 'cluster add': {
      const { cluster, settings } = request;
      const known = clusterIn(status, cluster)?.settings;
      return { kind: 'AddCluster', settings: clusterOf(cluster, settings, known) };
    }
    case 'cluster remove':
      return { kind: 'RemoveCluster', cluster: request.cluster };
    default:
      return backendCommand(request, status);
  }
}

function backendCommand(request: OfBackend, status: Status): Command {
  const { cluster } = request;
  switch (request.command) {
    case 'backend add':
      return addBackend(cluster, request.backend, status);
    case 'backend remove':
      return { kind: 'RemoveBackend', cluster, address: request.address };
    case 'backend weight':
      return { kind: 'SetWeight', cluster, address: request.address, weight: request.weight };
    case 'backend undrain':
      return { kind: 'UndrainBackend', cluster, address: request.address };
    case 'backend disable': {
      const { address, force } = request;
      return { kind: 'DisableBackend', cluster, address, force };
    }
    case 'backend drain': {
      const { address, force, deadline_ms: limit } = request;
      const deadline = limit === undefined ? undefined : milliseconds(limit);
      return { kind: 'DrainBackend', cluster, address, force, deadline };
    }
    default:
      return assertNever(request);
  }
}

/** Whoever gives no id means the one backend that has this address, if there is one. */
function addBackend(cluster: string, table: BackendTable, status: Status): Command {
  const backends = clusterIn(status, cluster)?.backends ?? [];
  const there = backends.filter(({ backend }) => {
    return sameAddress(backend.address, unmap(table.address));
  });
  const known = there.length === 1 ? there[0]?.backend.id : undefined;
  const named = { ...table, backend_id: table.backend_id ?? known };
  return { kind: 'AddBackend', cluster, backend: backendOf(cluster, named, backends.length) };
}

function clusterIn({ clusters }: Status, name: string): Status['clusters'][number] | undefined {
  return clusters.find(({ settings }) => settings.cluster === name);
}

/** Whether a listener on `0.0.0.0` has the port of this one on `::`, which is then bound without IPv4. */
function hasIpv4Twin(address: Address, { listeners }: Status): boolean {
  if (address.family !== 6 || !isUnspecified(address)) return false;
  const twin = ipv4(0, address.port);
  return listeners.some(({ config }) => sameAddress(config.address, twin));
}
