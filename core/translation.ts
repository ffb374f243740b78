/**
 * What the outputs of flow machines mean in sockets: each is folded into its listener's counters, told to the access log where
 * that is on, and becomes an output of the data plane.
 */
import type { FlowId, SocketId } from './brand.ts';
import { assertNever } from './assert.ts';
import type { Clusters } from './clusters.ts';
import type { Output } from './contract.ts';
import type { Egress } from './egress.ts';
import type { Evidence } from './evidence.ts';
import { foldOutput } from './metrics.ts';
import type { Listener } from './plane-listener.ts';
import type { Listeners } from './plane-listeners.ts';
import type { Instant } from './time.ts';
import { datagramsIn } from './train.ts';
import type { Upstreams } from './upstreams.ts';

export interface TranslationOptions {
  readonly listeners: Listeners;
  readonly clusters: Clusters;
  readonly upstreams: Upstreams;
  readonly egress: Egress;
  readonly evidence: Evidence;
}

export class Translation {
  private readonly tools: TranslationOptions;

  constructor(tools: TranslationOptions) {
    this.tools = tools;
  }

  /** Takes every output of a listener's flow machine, under this generation of the configuration. */
  drain(listener: Listener, generation: number, now: Instant): void {
    const { manager } = listener;
    for (let output = manager.pollOutput(); output !== undefined; output = manager.pollOutput()) {
      foldOutput(listener.counters, output);
      if (listener.ledger !== undefined)
        this.tools.listeners.logFlow(listener, output, generation, now);
      this.translate(listener, output, now);
    }
  }

  private translate(listener: Listener, output: Output, now: Instant): void {
    const { egress, upstreams } = this.tools;
    switch (output.kind) {
      case 'SendToBackend': {
        const socket = this.towards(listener, output.flow, 1, now);
        return egress.toBackend(listener, socket, output.prefix, output.payload);
      }
      case 'SendToClient':
        return egress.toClient(listener, listener.id, output.dst, output.from, output.payload);
      case 'TrainToBackend': {
        const { flow, payload, unit } = output;
        const socket = this.towards(listener, flow, datagramsIn(payload, unit), now);
        return egress.trainToBackend(listener, socket, payload, unit);
      }
      case 'TrainToClient':
        return egress.trainToClient(listener, listener.id, output);
      case 'OpenUpstream':
        return upstreams.open(listener, output.flow, output.backend, now);
      case 'CloseFlow':
        return upstreams.close(listener, output.flow);
      // The timer is asked for with pollTimeout, once a turn; metrics and drops were folded.
      case 'ArmTimer':
      case 'Metric':
      case 'Drop':
        return undefined;
      default:
        return assertNever(output);
    }
  }

  /** The socket of a flow on which so many datagrams go out now, and whoever counts them is told. */
  private towards(listener: Listener, flow: FlowId, datagrams: number, now: Instant): SocketId {
    const { clusters, upstreams, evidence } = this.tools;
    const socket = upstreams.socketOf(listener, flow);
    if (!clusters.countRequests && !clusters.countAnswers) return socket;
    const target = upstreams.targetOf(socket);
    for (let left = datagrams; left > 0; left -= 1) {
      target.cluster.backends.forwarded(target.backend, now);
    }
    evidence.forwarded(target, datagrams);
    return socket;
  }
}
