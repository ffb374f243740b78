/**
 * The upstream sockets of a data plane: which one each live flow has, whom it serves and where it leads. Every open and
 * every close of one passes here, so that loads, evidence and queues are told of it.
 */
import { present } from './assert.ts';
import { flowId, knownSocket, serialOf, socketId, type FlowId, type SocketId } from './brand.ts';
import type { Cluster, Clusters } from './clusters.ts';
import type { Backend } from './contract.ts';
import { DeadWays } from './dead-ways.ts';
import type { Egress } from './egress.ts';
import { policyOf } from './error-policy.ts';
import type { Evidence, Target } from './evidence.ts';
import type { Losses } from './losses.ts';
import type { OutputQueue } from './output-queue.ts';
import type { PlaneOutput } from './plane-contract.ts';
import type { Listener } from './plane-listener.ts';
import type { Errno, SendFailed } from './ports.ts';
import { Registry } from './registry.ts';
import type { Instant } from './time.ts';
import type { OpenFailed, OpenVerdict, UpstreamSources } from './upstream-sources.ts';
import { UpstreamTable } from './upstream-table.ts';

type UpstreamSendFailed = Extract<SendFailed, { direction: 'to-backend' }>;

/** Who must hear of sockets that open and close. */
export interface UpstreamsOptions {
  readonly outputs: OutputQueue<PlaneOutput>;
  readonly clusters: Clusters;
  readonly egress: Egress;
  readonly evidence: Evidence;
  readonly losses: Losses;
  readonly sources: UpstreamSources;
}

/** In place of a socket: serial numbers, and so ids, begin above it. */
const NONE = 0;

export class Upstreams {
  private readonly outputs: OutputQueue<PlaneOutput>;
  private readonly clusters: Clusters;
  private readonly egress: Egress;
  private readonly evidence: Evidence;
  private readonly losses: Losses;
  private readonly sources: UpstreamSources;
  private readonly table = new UpstreamTable(0);
  private readonly backends = new Registry<Backend>();
  private readonly deadWays = new DeadWays();
  private serial = 0;

  constructor({ outputs, clusters, egress, evidence, losses, sources }: UpstreamsOptions) {
    this.outputs = outputs;
    this.clusters = clusters;
    this.egress = egress;
    this.evidence = evidence;
    this.losses = losses;
    this.sources = sources;
  }

  /** Open sockets: one for each live flow. */
  get count(): number {
    return this.table.count;
  }

  /** Room for this many sockets. */
  grow(capacity: number): void {
    this.table.grow(capacity);
  }

  /** The slot of the flow that a socket serves; undefined once it has closed. */
  slotOf(socket: SocketId): number | undefined {
    return this.table.slotOf(socket);
  }

  /** The socket of a live flow. */
  socketOf(listener: Listener, flow: FlowId): SocketId {
    return knownSocket(present(listener.sockets[flow], 'a live flow has a socket'));
  }

  /** Where an open socket leads. */
  targetOf(socket: SocketId): Target {
    const { cluster, backend: number } = this.table.ownersOf(socket);
    return { cluster: this.clusters.at(cluster), backend: this.backends.get(number), number };
  }

  /**
   * A socket for a flow. One that was open for it closes, after the flush like any other: the flow is rebound, or, where the
   * backend is the same, has its socket renewed; then it stays in its cluster, wherever the listener leads by now.
   */
  open(listener: Listener, flow: FlowId, backend: Backend, now: Instant): void {
    const old = listener.sockets[flow] === NONE ? undefined : this.socketOf(listener, flow);
    const target = old === undefined ? undefined : this.targetOf(old);
    const cluster = target?.backend === backend ? target.cluster : this.clusterOf(listener);
    // Before the old one closes: what is known of a backend, or of a cluster that was removed, goes with its last socket.
    const number = this.backends.acquire(backend);
    cluster.backends.flowOpened(backend);
    this.clusters.flowOpened(cluster);
    if (old !== undefined) this.close(listener, flow);
    this.serial += 1;
    const socket = socketId(this.serial, listener.id);
    listener.sockets[flow] = socket;
    this.table.add(socket, flow, cluster.number, number);
    this.sources.open(cluster, socket, backend.address, now);
  }

  /** Where the machine lacks nothing, that no socket can be connected speaks against the backend. */
  openFailed(listener: Listener, failed: OpenFailed, now: Instant): OpenVerdict {
    const { socket, errno } = failed;
    const target = this.slotOf(socket) === undefined ? undefined : this.targetOf(socket);
    const cluster = target?.cluster ?? this.clusterOf(listener);
    const verdict = this.sources.failed(cluster, failed, now);
    if (!verdict.again && target !== undefined && isUnreachable(errno))
      this.evidence.unreachable(target, serialOf(socket), now);
    return verdict;
  }

  /** So many backend datagrams came to an open socket. */
  answered(socket: SocketId, datagrams: number): void {
    if (this.deadWays.hasDoubts) this.deadWays.forget(socket);
    if (this.clusters.countAnswers || this.evidence.hasDoubts)
      this.evidence.answered(this.targetOf(socket), datagrams);
  }

  /** The flow's new socket takes the place of one that no way led out of. */
  renewed(listener: Listener, flow: FlowId, now: Instant): void {
    this.deadWays.renewed(this.socketOf(listener, flow), now);
  }

  /** A refusal was heard on a socket, which may have closed since. */
  refused(listener: Listener, socket: SocketId): void {
    listener.counters.upstreamRefused += 1;
    if (this.slotOf(socket) === undefined) return;
    this.evidence.refused(this.targetOf(socket), serialOf(socket));
  }

  /** What a send that failed says of its backend. The flow that should have a new socket for it, if one should. */
  sendFailed(listener: Listener, failure: UpstreamSendFailed, now: Instant): FlowId | undefined {
    const { socket } = failure;
    if (failure.cause === 'refused') this.refused(listener, socket);
    if (failure.cause !== 'error' || policyOf(failure.errno).evidence !== 'unreachable')
      return undefined;
    const slot = this.slotOf(socket);
    if (slot === undefined) return undefined;
    this.evidence.unreachable(this.targetOf(socket), serialOf(socket), now);
    if (!isUnreachable(failure.errno) || !this.deadWays.failed(socket, now)) return undefined;
    return flowId(slot);
  }

  close(listener: Listener, flow: FlowId): void {
    const socket = this.socketOf(listener, flow);
    const { cluster, backend, number } = this.targetOf(socket);
    cluster.backends.flowClosed(backend);
    this.clusters.flowClosed(cluster);
    this.backends.release(number);
    this.losses.drains.flowClosed();
    if (this.backends.find(backend) === undefined) this.forget(backend);
    this.table.remove(socket);
    if (this.deadWays.hasDoubts) this.deadWays.forget(socket);
    listener.sockets[flow] = NONE;
    this.egress.upstreamClosed(listener, socket);
    this.outputs.push({ kind: 'CloseUpstream', socket });
  }

  /** Closes every socket of a listener; how many. */
  closeAll(listener: Listener): number {
    let count = 0;
    for (const [flow, socket] of listener.sockets.entries()) {
      if (socket === NONE) continue;
      this.close(listener, flowId(flow));
      count += 1;
    }
    return count;
  }

  private clusterOf(listener: Listener): Cluster {
    return present(this.clusters.of(listener.config), 'a flow was admitted to a cluster');
  }

  /** No flow is left there. */
  private forget(backend: Backend): void {
    this.evidence.forget(backend);
    this.losses.fates.forget(backend);
  }
}

/** Whether this is about the way to a backend, and about nothing that the machine lacks. */
function isUnreachable(errno: Errno): boolean {
  const { evidence, lacks } = policyOf(errno);
  return evidence === 'unreachable' && lacks === undefined;
}
