/**
 * What a flow machine does with a train: all of its datagrams at once, where each would go the same way and change nothing for
 * the next. That is a live flow of a cluster that counts no datagrams, nor puts anything before them; of others each datagram
 * is an input.
 */
import { isUnanswerable } from './address.ts';
import { VALIDATED } from './amplification.ts';
import { flowId } from './brand.ts';
import type { ClusterConfig, ManagerTrain, Output } from './contract.ts';
import type { LiveFlows } from './live-flows.ts';
import type { OutputQueue } from './output-queue.ts';
import type { Instant } from './time.ts';
import { datagramsIn } from './train.ts';

type ClientTrain = Extract<ManagerTrain, { kind: 'ClientTrain' }>;
type BackendTrain = Extract<ManagerTrain, { kind: 'BackendTrain' }>;

export class FlowTrains {
  private readonly flows: LiveFlows;
  private readonly outputs: OutputQueue<Output>;

  constructor(flows: LiveFlows, outputs: OutputQueue<Output>) {
    this.flows = flows;
    this.outputs = outputs;
  }

  /** Whether it was taken. `config` and `largest`, bytes, are those of the listener now. */
  take(train: ManagerTrain, config: ClusterConfig, largest: number, now: Instant): boolean {
    if (train.kind === 'BackendTrain') return this.reply(train, now);
    const goesOn = train.unit <= largest && config.cluster !== '' && !isUnanswerable(train.src);
    return goesOn && this.forward(train, now);
  }

  /** In the order of the decisions on a single datagram. */
  private forward({ src, local, payload, unit, backends }: ClientTrain, now: Instant): boolean {
    const { table, configs, deadlines } = this.flows;
    if (backends.denies?.(src) === true) return false;
    const slot = table.find(table.hashOf(src, local), src, local);
    if (slot === undefined) return false;
    const config = configs.get(table.configOf(slot));
    if (countsDatagrams(config) || looksAtEach(config)) return false;
    const backend = this.flows.backends.get(table.backendOf(slot));
    if (backends.fateOf !== undefined && backends.fateOf(backend) !== 'keep') return false;
    const datagrams = datagramsIn(payload, unit);
    table.setCredit(slot, VALIDATED);
    table.countRequest(slot, datagrams);
    deadlines.touch(slot, now, config.frontTimeout);
    this.count('TrainIn', datagrams, payload.length);
    const [flow, dst] = [flowId(slot), backend.address];
    this.outputs.push({ kind: 'TrainToBackend', flow, dst, payload, unit });
    this.flows.reschedule();
    return true;
  }

  private reply({ flow, payload, unit }: BackendTrain, now: Instant): boolean {
    const { table, configs, deadlines } = this.flows;
    if (!table.isLive(flow) || table.creditOf(flow) !== VALIDATED) return false;
    const config = configs.get(table.configOf(flow));
    if (countsDatagrams(config)) return false;
    const datagrams = datagramsIn(payload, unit);
    table.countResponse(flow, datagrams);
    deadlines.touch(flow, now, config.backTimeout);
    this.count('TrainOut', datagrams, payload.length);
    const [dst, from] = [table.clientOf(flow), table.localOf(flow)];
    this.outputs.push({ kind: 'TrainToClient', flow, dst, from, payload, unit });
    this.flows.reschedule();
    return true;
  }

  private count(kind: 'TrainIn' | 'TrainOut', datagrams: number, bytes: number): void {
    this.outputs.push({ kind: 'Metric', event: { kind, datagrams, bytes } });
  }
}

/** Whether a number of datagrams ends a flow. Without that it never lingers either. */
function countsDatagrams({ requests, responses }: ClusterConfig): boolean {
  return requests !== 0 || responses !== 0;
}

/** Whether a client datagram is judged, or headed, by itself. */
function looksAtEach({ sendProxyProtocol, datagramsPerSecond }: ClusterConfig): boolean {
  return sendProxyProtocol || datagramsPerSecond !== 0;
}
