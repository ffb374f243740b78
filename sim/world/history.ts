/**
 * Histories: all facts of a run, kept. An oracle that is shown one judges it as it would judge the run, so that it can be
 * asked what it thinks of a history that never happened: each mutator makes one out of another.
 */
import { present } from '../../core/assert.ts';
import type { PlaneInput, PlaneOutput } from '../../core/plane-contract.ts';
import type { SendFailed } from '../../core/ports.ts';
import { after, instant, type Duration, type Instant } from '../../core/time.ts';
import { Observer } from '../properties.ts';
import type { Random } from '../random.ts';
import type { Seed } from '../seed.ts';
import { FactHub, type FactKind, type Facts, type Hearings, type ProcessNumber } from './facts.ts';
import type { OracleKind } from './oracle.ts';
import { ipKey, type AddressKey } from './packet.ts';
import { runWorldSeed } from './run-world.ts';
import type { WorldSpec } from './spec.ts';
import { Verdicts, ViolationFound } from './verdicts.ts';
import type { WorldScenario } from './world-scenario.ts';

/** A fact, and when it was told. */
export type Told<Kind extends FactKind = FactKind> = {
  readonly [One in Kind]: { readonly kind: One; readonly fact: Facts[One]; readonly at: Instant };
}[Kind];

export type History = readonly Told[];

/** A run as its oracles heard it. */
export interface RecordedRun {
  readonly spec: WorldSpec;
  readonly history: History;
}

/** What an oracle has against a history; undefined when it has nothing. */
export type Objection = { readonly property: string; readonly detail: string } | undefined;

/** Runs a seed without oracles, and keeps every fact of it. */
export async function recordRun(scenario: WorldScenario, seed: Seed): Promise<RecordedRun> {
  const history: Told[] = [];
  const observer = new Observer();
  const { spec } = await runWorldSeed(scenario, seed, {
    observer,
    oracles: [],
    listen: (hub) => hub.join(recorder((told) => history.push(told))),
  });
  return { spec, history };
}

/** Hears every fact, and hands on a copy of it that stays as it is. */
function recorder(keep: (told: Told) => void): Hearings {
  return {
    PhaseBegan: (fact, at) => keep({ kind: 'PhaseBegan', fact, at }),
    Acted: (fact, at) => keep({ kind: 'Acted', fact, at }),
    FaultEnded: (fact, at) => keep({ kind: 'FaultEnded', fact, at }),
    Packet: (fact, at) => keep({ kind: 'Packet', fact, at }),
    ClientSent: (fact, at) => keep({ kind: 'ClientSent', fact, at }),
    ClientHeard: (fact, at) => keep({ kind: 'ClientHeard', fact, at }),
    BackendHeard: (fact, at) => keep({ kind: 'BackendHeard', fact, at }),
    BackendSent: (fact, at) => keep({ kind: 'BackendSent', fact, at }),
    Started: (fact, at) => keep({ kind: 'Started', fact, at }),
    Crashed: (fact, at) => keep({ kind: 'Crashed', fact, at }),
    Exited: (fact, at) => keep({ kind: 'Exited', fact, at }),
    Bound: (fact, at) => keep({ kind: 'Bound', fact, at }),
    DataInput: (fact, at) =>
      keep({ kind: 'DataInput', fact: { ...fact, input: ownInput(fact.input) }, at }),
    DataTimeout: (fact, at) => keep({ kind: 'DataTimeout', fact, at }),
    DataOutput: (fact, at) =>
      keep({ kind: 'DataOutput', fact: { ...fact, output: ownOutput(fact.output) }, at }),
    ControlInput: (fact, at) => keep({ kind: 'ControlInput', fact, at }),
    ControlTimeout: (fact, at) => keep({ kind: 'ControlTimeout', fact, at }),
    ControlOutput: (fact, at) => keep({ kind: 'ControlOutput', fact, at }),
    TurnEnded: (fact, at) => keep({ kind: 'TurnEnded', fact, at }),
    Verified: (fact, at) => keep({ kind: 'Verified', fact, at }),
    Counted: (fact, at) => keep({ kind: 'Counted', fact, at }),
  };
}

/** What an oracle says to a history, heard from its beginning to its end. */
export function judge(kind: OracleKind, { spec, history }: RecordedRun): Objection {
  const observer = new Observer();
  const verdicts = new Verdicts(observer);
  const hub = new FactHub();
  const oracle = kind.begin(verdicts, spec);
  hub.join(oracle.hearings);
  try {
    for (const told of history) tell(hub, told);
    oracle.finish?.(history.at(-1)?.at ?? instant(0));
  } catch (error) {
    if (!(error instanceof ViolationFound)) throw error;
    const [violation] = observer.violations;
    return { property: violation?.name ?? '', detail: verdicts.detail ?? '' };
  }
  return undefined;
}

/** Without one of its facts. */
export function without(history: History, index: number): History {
  return history.toSpliced(index, 1);
}

/** With a fact in place of another. */
export function replaced(history: History, index: number, told: Told): History {
  return history.with(index, told);
}

/** With one of its facts told twice in a row. */
export function repeated(history: History, index: number): History {
  return history.toSpliced(index, 0, toldAt(history, index));
}

/** With two of its facts in each other's places, at each other's times. */
export function swapped(history: History, one: number, other: number): History {
  const [first, second] = [toldAt(history, one), toldAt(history, other)];
  return history.with(one, { ...second, at: first.at }).with(other, { ...first, at: second.at });
}

/** With one of its facts told so much later, after everything that happened until then. */
export function delayed(history: History, index: number, by: Duration): History {
  const told = toldAt(history, index);
  const at = after(told.at, by);
  const rest = without(history, index);
  const next = rest.findIndex((other) => other.at > at);
  return rest.toSpliced(next < 0 ? rest.length : next, 0, { ...told, at });
}

/** With neighbours in each other's places that do not know of each other: about every second pair that there is. */
export function reordered({ spec, history }: RecordedRun, random: Random): History {
  const hosts = hostsOf(spec, history);
  const order = [...history];
  for (let index = 1; index < order.length; index++) {
    const [one, other] = [toldAt(order, index - 1), toldAt(order, index)];
    if (!areIndependent(one, other, hosts) || random.choose('reorder', 2) === 0) continue;
    order[index - 1] = { ...other, at: one.at };
    order[index] = { ...one, at: other.at };
  }
  return order;
}

function toldAt(history: History, index: number): Told {
  return present(history[index], 'there is a fact at this place');
}

function tell<Kind extends FactKind>(hub: FactHub, { kind, fact, at }: Told<Kind>): void {
  hub.tell(kind, fact, at);
}

/** Which host an address, a client or a process is on. */
interface Hosts {
  readonly ofIp: ReadonlyMap<AddressKey, string>;
  readonly clients: readonly string[];
  readonly processes: ReadonlyMap<ProcessNumber, string>;
}

function hostsOf({ clientHosts, clients, backends, proxies }: WorldSpec, history: History): Hosts {
  const ofIp = new Map<AddressKey, string>();
  for (const [number, { ips }] of clientHosts.entries())
    for (const ip of ips) ofIp.set(ipKey(ip), `client${number}`);
  for (const [number, { address }] of backends.entries())
    ofIp.set(ipKey(address), `backend${number}`);
  for (const [number, { shape }] of proxies.entries())
    for (const ip of shape.addresses) ofIp.set(ipKey(ip), `proxy${number}`);
  const processes = new Map<ProcessNumber, string>();
  for (const { kind, fact } of history)
    if (kind === 'Started') processes.set(fact.process, `proxy${fact.proxy}`);
  return { ofIp, clients: clients.map(({ host }) => `client${host}`), processes };
}

/** Seen at two hosts, and not of one packet that is under way between them. */
function areIndependent(one: Told, other: Told, hosts: Hosts): boolean {
  const [first, second] = [hostOf(one, hosts), hostOf(other, hosts)];
  if (first === undefined || second === undefined || first === second) return false;
  const areOfOnePacket =
    one.kind === 'Packet' &&
    other.kind === 'Packet' &&
    one.fact.packet.serial === other.fact.packet.serial;
  return !areOfOnePacket;
}

/** The host where a fact is seen; undefined where it is more than one's, or cannot be told. */
function hostOf(told: Told, { ofIp, clients, processes }: Hosts): string | undefined {
  switch (told.kind) {
    case 'ClientHeard':
      return clients[told.fact.client];
    case 'BackendHeard':
      return `backend${told.fact.backend}`;
    case 'Packet': {
      const { kind, packet } = told.fact;
      const { src, dst } = packet.datagram;
      if (packet.kind !== 'datagram') return undefined;
      if (kind === 'sent') return packet.raw ? undefined : ofIp.get(ipKey(src));
      return kind === 'delivered' ? ofIp.get(ipKey(dst)) : undefined;
    }
    case 'DataInput':
    case 'DataOutput':
    case 'DataTimeout':
      return processes.get(told.fact.process);
    default:
      return undefined;
  }
}

/** Payloads and headers are lent: a copy owns its own. Everything else in a fact is a value. */
function ownInput(input: PlaneInput): PlaneInput {
  switch (input.kind) {
    case 'ClientArrived':
    case 'BackendArrived':
      return { ...input, payload: input.payload.slice() };
    case 'SendFailed':
      return { ...input, failure: ownFailure(input.failure) };
    default:
      return input;
  }
}

function ownFailure(failure: SendFailed): SendFailed {
  if (failure.cause === 'error') return failure;
  const payload = failure.payload.slice();
  if (failure.direction === 'to-client') return { ...failure, payload };
  return { ...failure, header: failure.header?.slice(), payload };
}

function ownOutput(output: PlaneOutput): PlaneOutput {
  switch (output.kind) {
    case 'SendToBackend':
      return { ...output, header: output.header?.slice(), payload: output.payload.slice() };
    case 'SendToClient':
      return { ...output, payload: output.payload.slice() };
    default:
      return output;
  }
}
