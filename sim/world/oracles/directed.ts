/** What a data plane was directed to be, folded from what it heard: listeners by number, clusters by name. */
import type { ListenerId } from '../../../core/brand.ts';
import type { ClusterSettings, ListenerConfig } from '../../../core/config.ts';
import type { GeneratedDirective } from '../../../core/directives.ts';

export class DirectedState {
  readonly listeners: Map<ListenerId, ListenerConfig> = new Map();
  readonly clusters: Map<string, ClusterSettings> = new Map();
  #generation = 0;

  /** Directives of an earlier generation than one that was heard change nothing. */
  hear({ generation, directive }: GeneratedDirective): void {
    if (generation < this.#generation) return;
    this.#generation = generation;
    switch (directive.kind) {
      case 'AddListener':
      case 'UpdateListener':
        this.listeners.set(directive.listener, directive.config);
        break;
      case 'RemoveListener':
        this.listeners.delete(directive.listener);
        break;
      case 'SetCluster':
        this.clusters.set(directive.settings.cluster, directive.settings);
        break;
      case 'RemoveCluster':
        this.clusters.delete(directive.cluster);
        break;
      default:
    }
  }

  /** The cluster that a listener leads to, once there is one of that name. */
  clusterOf(listener: ListenerId): ClusterSettings | undefined {
    const name = this.listeners.get(listener)?.cluster;
    return name === undefined ? undefined : this.clusters.get(name);
  }
}
