/**
 * Who is probed, folded from what the control plane tells data planes and whom it probes. A probe names where it connects to;
 * which backend that is follows from the cluster's settings, unless two have one address and a companion port.
 */
import { formatAddress, sameAddress, sameIp, type Address } from '../../../core/address.ts';
import type { ClusterSettings } from '../../../core/config.ts';
import type { Probe } from '../../../core/control-contract.ts';
import type { HealthSettings } from '../../../core/health/settings.ts';

/** A cluster's health settings, if it is probed. */
export function probingOf({ health }: ClusterSettings): HealthSettings | undefined {
  return health === undefined || health.mode === 'HEALTH_OFF' ? undefined : health;
}

/** The backend that a probe asks; undefined when it is none of the cluster's, `unclear` when it may be one or another. */
export function probedBackend(
  settings: ClusterSettings,
  { target, mode }: Probe,
): Address | undefined | 'unclear' {
  const companion = mode === 'tcp' ? probingOf(settings)?.tcpPort : undefined;
  const meant = settings.backends
    .map(({ address }) => address)
    .filter((address) =>
      companion === undefined
        ? sameAddress(address, target)
        : sameIp(address, target) && target.port === companion,
    );
  const names = new Set(meant.map((address) => formatAddress(address)));
  return names.size > 1 ? 'unclear' : meant[0];
}

/** Whether a probe in flight still asks what should be asked. */
export function sameQuestion(one: ClusterSettings, other: ClusterSettings): boolean {
  return questionOf(one) === questionOf(other);
}

/** Whether a probe asks what its cluster says. */
export function asksRight(probe: Probe, settings: HealthSettings): boolean {
  const isUdp = settings.mode === 'UDP_PROBE';
  return (
    probe.mode === (isUdp ? 'udp' : 'tcp') &&
    probe.expectReply === (!isUdp || settings.expectReply) &&
    String(probe.payload) === String(isUdp ? settings.udpProbePayload : undefined)
  );
}

function questionOf({ sendProxyProtocol, health }: ClusterSettings): string {
  const { mode, tcpPort, expectReply, udpProbePayload } = health ?? {};
  return [sendProxyProtocol, mode, tcpPort, expectReply, udpProbePayload].join(' ');
}
