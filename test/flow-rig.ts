/**
 * A listener's flow machine on a bench: every call is drained at once and followed by a check of all invariants, so that no
 * test can forget either. Also the short words in which tests write inputs and expected outputs.
 */
import { parseAddress, type Address } from '../core/address.ts';
import { assertNever, present } from '../core/assert.ts';
import { flowId, type FlowId } from '../core/brand.ts';
import {
  NO_CLUSTER,
  type Backend,
  type BackendSource,
  type CloseReason,
  type ClusterConfig,
  type ConfigEvent,
  type DropReason,
  type Fate,
  type MetricEvent,
  type Output,
  type Refusal,
} from '../core/contract.ts';
import { PLACEMENT_SEED, type Hash64 } from '../core/hash.ts';
import { UdpManager, type ManagerOptions } from '../core/manager.ts';
import { instant, microseconds, seconds, type Instant } from '../core/time.ts';
import { checkInvariants } from '../core/verify.ts';

/** What a view says besides its selection; nothing is refused and every flow kept where it is silent. */
export interface Verdicts {
  readonly denied?: boolean;
  readonly refusal?: Refusal | undefined;
  /** Of flows on `ONE`, and on any other backend. */
  readonly fates?: { readonly one: Fate; readonly other: Fate } | undefined;
}

/** One call on a flow machine. `serve` is the backend that a selection would give. */
export type Action =
  | ({
      readonly kind: 'client';
      readonly src: Address;
      readonly local?: Address | undefined;
      readonly payload: Uint8Array;
      readonly serve: Backend | undefined;
    } & Verdicts)
  | { readonly kind: 'backend'; readonly flow: FlowId; readonly payload: Uint8Array }
  | { readonly kind: 'config'; readonly event: ConfigEvent }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'abort'; readonly flow: FlowId; readonly reason: CloseReason }
  | { readonly kind: 'closeAll' };

export class FlowRig {
  readonly manager: UdpManager;
  /** How often a backend was asked for, and the last key it was asked with. */
  selections = 0;
  lastKey: Hash64 | undefined;
  /** Where to ask; `ONE` unless a test says otherwise. */
  backends: BackendSource = always(ONE);

  constructor(options: Partial<ManagerOptions> = {}) {
    this.manager = new UdpManager({
      config: cluster(),
      maxFlows: 8,
      maxRxDatagramSize: 1_500,
      placementSeed: PLACEMENT_SEED,
      tableSeed: { first: 1, second: 2 },
      ...options,
    });
  }

  client(src: Address, payload: Uint8Array, at: number, local?: Address): Output[] {
    const backends: BackendSource = {
      ...this.backends,
      select: (key, now) => {
        this.selections += 1;
        this.lastKey = key;
        return this.backends.select(key, now);
      },
    };
    const input = { kind: 'ClientDatagram', src, local, payload, backends } as const;
    return this.drained(() => this.manager.handleInput(input, atSecond(at)));
  }

  backend(flow: number, payload: Uint8Array, at: number): Output[] {
    const input = { kind: 'BackendDatagram', flow: flowId(flow), payload } as const;
    return this.drained(() => this.manager.handleInput(input, atSecond(at)));
  }

  config(event: ConfigEvent, at = 0): Output[] {
    return this.drained(() => this.manager.handleInput({ kind: 'Config', event }, atSecond(at)));
  }

  timeout(at: number): Output[] {
    return this.drained(() => this.manager.handleTimeout(atSecond(at)));
  }

  abort(flow: number, at: number, reason?: CloseReason): Output[] {
    return this.drained(() => this.manager.abortFlow(flowId(flow), atSecond(at), reason));
  }

  closeAll(at: number): Output[] {
    return this.drained(() => this.manager.closeAll(atSecond(at)));
  }

  perform(action: Action, at: number): Output[] {
    switch (action.kind) {
      case 'client':
        this.backends = view(action.serve, action);
        return this.client(action.src, action.payload, at, action.local);
      case 'backend':
        return this.backend(action.flow, action.payload, at);
      case 'config':
        return this.config(action.event, at);
      case 'timeout':
        return this.timeout(at);
      case 'abort':
        return this.abort(action.flow, at, action.reason);
      case 'closeAll':
        return this.closeAll(at);
      default:
        return assertNever(action);
    }
  }

  private drained(call: () => void): Output[] {
    call();
    const outputs: Output[] = [];
    const { manager } = this;
    for (let output = manager.pollOutput(); output !== undefined; output = manager.pollOutput()) {
      outputs.push(output);
    }
    checkInvariants(manager);
    return outputs;
  }
}

/** Seconds since the origin, down to a microsecond. */
export function atSecond(at: number): Instant {
  return instant(Math.round(at * 1_000_000));
}

export function address(text: string): Address {
  return present(parseAddress(text), `${text} is an address`);
}

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function cluster(more: Partial<ClusterConfig> = {}): ClusterConfig {
  return {
    ...NO_CLUSTER,
    cluster: 'dns',
    frontTimeout: seconds(30),
    backTimeout: seconds(30),
    ...more,
  };
}

function backendAt(text: string): Backend {
  return { id: text, address: address(text), weight: 100, backup: false };
}

/** A view that selects `backend`, with these verdicts. */
export function view(backend: Backend | undefined, verdicts: Verdicts): BackendSource {
  const { denied, refusal, fates } = verdicts;
  return {
    ...always(backend),
    ...(denied !== undefined && { denies: () => denied }),
    ...(refusal !== undefined && { refuses: () => refusal }),
    ...(fates !== undefined && {
      fateOf: ({ id }: Backend) => (id === ONE.id ? fates.one : fates.other),
    }),
  };
}

export function always(backend: Backend | undefined): BackendSource {
  return { select: () => backend };
}

export const A: Address = address('192.0.2.1:1000');
export const B: Address = address('198.51.100.2:2000');
export const C: Address = address('203.0.113.3:3000');
export const ONE: Backend = backendAt('10.0.0.1:53');
export const TWO: Backend = backendAt('10.0.0.2:53');

export const CREATED: Output = metric({ kind: 'FlowCreated' });
export const EVICTED: Output = metric({ kind: 'FlowEvicted' });
export const REBOUND: Output = metric({ kind: 'FlowRebound' });
export const SHED: Output = metric({ kind: 'FlowShed' });
export const SHED_SOURCE: Output = metric({ kind: 'FlowShedSourceLimit' });

export function opened(flow: number, backend: Backend = ONE): Output {
  return { kind: 'OpenUpstream', flow: flowId(flow), backend };
}

/** What one forwarded client datagram gives: the metric, then the send. */
export function forwarded(
  flow: number,
  payload: Uint8Array,
  backend: Backend = ONE,
  prefix?: Uint8Array,
): Output[] {
  return [
    metric({ kind: 'DatagramIn', bytes: payload.length }),
    { kind: 'SendToBackend', flow: flowId(flow), dst: backend.address, prefix, payload },
  ];
}

/** What one returned backend datagram gives. */
export function returned(
  flow: number,
  payload: Uint8Array,
  dst: Address,
  from?: Address,
): Output[] {
  return [
    metric({ kind: 'DatagramOut', bytes: payload.length }),
    { kind: 'SendToClient', flow: flowId(flow), dst, from, payload },
  ];
}

/** What one admission gives, up to where the timer or a cap comes in. */
export function admitted(flow: number, payload: Uint8Array, backend: Backend = ONE): Output[] {
  return [CREATED, opened(flow, backend), ...forwarded(flow, payload, backend)];
}

export function armed(at: number): Output {
  return { kind: 'ArmTimer', at: atSecond(at) };
}

/** It lasted so many seconds. */
export function closed(flow: number, reason: CloseReason, lasted = 0): Output[] {
  return [
    EVICTED,
    {
      kind: 'CloseFlow',
      flow: flowId(flow),
      reason,
      lasted: microseconds(Math.round(lasted * 1_000_000)),
    },
  ];
}

export function dropped(reason: DropReason): Output {
  return { kind: 'Drop', reason };
}

function metric(event: MetricEvent): Output {
  return { kind: 'Metric', event };
}
