/** From a drawn cluster to the core's configuration. */
import { NO_CLUSTER, type ClusterConfig } from '../../core/contract.ts';
import { milliseconds } from '../../core/time.ts';
import type { DrawnCluster, DrawnTerms } from './actions.ts';

/** `prefix` spells the cluster's name, which must not matter. */
export function toClusterConfig(drawn: DrawnCluster, prefix: string): ClusterConfig {
  return {
    ...NO_CLUSTER,
    cluster: drawn.cluster < 0 ? '' : `${prefix}cluster-${drawn.cluster}`,
    affinityWithPort: drawn.affinityWithPort,
    responses: drawn.responses,
    requests: drawn.requests,
    frontTimeout: milliseconds(drawn.frontMs),
    backTimeout: milliseconds(drawn.backMs),
    sendProxyProtocol: drawn.sendProxyProtocol,
    proxyProtocolEveryDatagram: drawn.everyDatagram,
    rejectClientHeader: true,
    maxFlowsPerIp: drawn.perIp,
    maxFlowsPerSubnet: drawn.perSubnet,
    subnetPrefixIpv4: 24,
    subnetPrefixIpv6: 64,
    ...(drawn.terms === undefined ? {} : toTerms(drawn.terms)),
  };
}

function toTerms(terms: DrawnTerms): Partial<ClusterConfig> {
  return {
    responsesPerRequest: terms.responsesPerRequest,
    requestsLinger: terms.requestsLinger,
    lateReplyGrace: milliseconds(terms.graceMs),
    forwardEmptyDatagrams: terms.forwardEmpty,
    datagramsPerSecond: terms.rate,
    datagramsBurst: terms.burst,
    amplification: { factor: terms.creditFactor, floor: terms.creditFloor },
  };
}
