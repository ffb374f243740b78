/**
 * What must happen somewhere in the worlds: the places that scenarios name as what they reach. Without them a sweep could be
 * green because nothing ever went wrong in it. A fold over facts, as oracles are, that violates nothing.
 */
import { isUnspecified } from '../../core/address.ts';
import type { Reply } from '../../core/commands.ts';
import type { ControlEvent, ControlOutput } from '../../core/control-contract.ts';
import type { Report } from '../../core/directives.ts';
import type { PlaneInput } from '../../core/plane-contract.ts';
import { sometimes, type Property } from '../properties.ts';
import type { WorldAction } from './actions.ts';
import { seeCounted } from './coverage-counters.ts';
import type { Facts, Hearings, ProcessNumber } from './facts.ts';
import type { OracleKind } from './oracle.ts';
import type { LossCause, PacketFate } from './packet.ts';
import type { WorldSpec } from './spec.ts';
import type { Verdicts } from './verdicts.ts';

type Sometimes = Property<'sometimes'>;

const LOST: Readonly<Record<LossCause, Sometimes>> = {
  partition: sometimes('a partition keeps a packet'),
  'too-big': sometimes('a link is too narrow'),
  loss: sometimes('a link loses a packet'),
  checksum: sometimes('a checksum fails'),
  'queue-full': sometimes('a queue of a link is full'),
  'no-host': sometimes('a packet is for nobody'),
  'no-port': sometimes('a packet finds a closed port'),
  'no-mapping': sometimes('a NAT has forgotten a client'),
  'nat-full': sometimes('a NAT has no port left'),
};
const DUPLICATED: Sometimes = sometimes('a link duplicates a packet');
const REORDERED: Sometimes = sometimes('a link reorders packets');
const CORRUPTED: Sometimes = sometimes('a link corrupts a packet');
const REMAPPED: Sometimes = sometimes('a NAT gives another port');

const SECOND_ANSWER: Sometimes = sometimes('a second answer reaches its client');
const EMPTY_HEARD: Sometimes = sometimes('an empty datagram reaches a backend');
const PROXIED: Sometimes = sometimes('a backend is told the true client');
const IPV6_SERVED: Sometimes = sometimes('an IPv6 client is answered');
const MAPPED_SERVED: Sometimes = sometimes('an IPv4 client of an IPv6 listener is answered');
const SERVED_HEALED: Sometimes = sometimes('a client is answered after healing');

const PROBE_DOWN: Sometimes = sometimes('probes take a backend out');
const PROBE_UP: Sometimes = sometimes('probes bring a backend back');
const EJECTED: Sometimes = sometimes('traffic takes a backend out');
const RETURNED: Sometimes = sometimes('a backend returns when its time is over');
const LAST_RETURNED: Sometimes = sometimes('a backend returns because it is the last');
const NOBODY: Sometimes = sometimes('no backend is available');
const RECOVERED: Sometimes = sometimes('a cluster recovers');
const DRAINED_EMPTY: Sometimes = sometimes('a drain ends without a flow');
const DRAINED_LATE: Sometimes = sometimes('a drain deadline cuts a flow');

const NO_DESCRIPTOR: Sometimes = sometimes('the kernel refuses a descriptor');
const NO_SOURCE: Sometimes = sometimes('a source address is not there');
const LISTENER_FAILS: Sometimes = sometimes('a listener does not open');
const LISTENER_RETRIED: Sometimes = sometimes('a listener opens at last');

const RELOADED: Sometimes = sometimes('a reload changes many things');
const RELOADED_NOTHING: Sometimes = sometimes('a reload changes nothing');
const REFUSED: Readonly<Record<Extract<Reply, { ok: false }>['error']['kind'], Sometimes>> = {
  NotFound: sometimes('a command names what is not there'),
  Exists: sometimes('a command names what is there already'),
  Invalid: sometimes('a command is out of range'),
  LastBackend: sometimes('the last backend is kept'),
  Stopping: sometimes('a command comes too late'),
};
const PREVIEWED: Sometimes = sometimes('a reload is tried dry');
const EXPLAINED: Sometimes = sometimes('an operator is told why');
const LISTED: Sometimes = sometimes('an operator sees a live flow');

const CRASHED: Sometimes = sometimes('a process dies with its flows');
const STARTED_AGAIN: Sometimes = sometimes('a process starts where one was');
const STOPPED_EMPTY: Sometimes = sometimes('a stop waits for every flow');
const STOPPED_SHORT: Sometimes = sometimes('a stop cuts flows short');
const PROCESS_STANDS: Sometimes = sometimes('a process stands still');
const CLOCK_STANDS: Sometimes = sometimes('a clock stands still');

/** A reload of so many commands is one that changes many things. */
const MANY_COMMANDS = 5;

export const COVERAGE: OracleKind = {
  name: 'coverage',
  begin: (verdicts, spec) => ({ hearings: hearingsOf(new Seen(verdicts, spec)) }),
};

function hearingsOf(seen: Seen): Hearings {
  const { verdicts } = seen;
  return {
    Counted: (totals) => seeCounted(verdicts, totals),
    Packet: (fate) => seen.packet(fate),
    ClientHeard: (heard) => seen.clientHeard(heard),
    BackendHeard: ({ header, bytes }) => {
      if (bytes === 0) verdicts.see(EMPTY_HEARD);
      if (header.kind === 'Proxied') verdicts.see(PROXIED);
    },
    PhaseBegan: ({ phase }) => (seen.isHealed = phase === 'heal'),
    Acted: ({ action }) => seen.acted(action),
    Started: ({ proxy }) => seen.started(proxy),
    Crashed: () => verdicts.see(CRASHED),
    DataInput: ({ input }) => seen.dataInput(input),
    DataOutput: ({ output }) => {
      if (output.kind === 'Report') seen.reported(output.report);
    },
    ControlOutput: ({ process, output }) => seen.control(process, output),
  };
}

class Seen {
  readonly verdicts: Verdicts;
  isHealed = false;
  readonly #spec: WorldSpec;
  /** Public ports of sockets behind NATs, by their private addresses and their peers: as many as there were. */
  readonly #publicPorts = new Map<string, number>();
  readonly #started = new Set<number>();
  readonly #configured = new Set<ProcessNumber>();
  readonly #failedListeners = new Set<number>();

  constructor(verdicts: Verdicts, spec: WorldSpec) {
    this.verdicts = verdicts;
    this.#spec = spec;
  }

  packet(fate: PacketFate): void {
    switch (fate.kind) {
      case 'lost':
        return this.verdicts.see(LOST[fate.cause]);
      case 'duplicated':
        return this.verdicts.see(DUPLICATED);
      case 'reordered':
        return this.verdicts.see(REORDERED);
      case 'corrupted':
        return this.verdicts.see(CORRUPTED);
      case 'sent':
        return undefined;
      case 'delivered':
        if (this.#spec.nats.length > 0) this.#translated(fate);
        return undefined;
      default:
        return undefined;
    }
  }

  clientHeard({ local, from, message }: Facts['ClientHeard']): void {
    const { verdicts } = this;
    if (message?.kind !== 'answer') return;
    if (message.copy > 0) verdicts.see(SECOND_ANSWER);
    if (this.isHealed) verdicts.see(SERVED_HEALED);
    if (local.family === 6) verdicts.see(IPV6_SERVED);
    else if (this.#isMapped(from.port)) verdicts.see(MAPPED_SERVED);
  }

  acted(action: WorldAction): void {
    if (action.kind !== 'HostFault') return;
    const { standstill } = action.faults;
    if (standstill === 'process') this.verdicts.see(PROCESS_STANDS);
    if (standstill === 'clock') this.verdicts.see(CLOCK_STANDS);
  }

  started(proxy: number): void {
    if (this.#started.has(proxy)) this.verdicts.see(STARTED_AGAIN);
    this.#started.add(proxy);
  }

  dataInput(input: PlaneInput): void {
    if (input.kind !== 'OpenFailed') return;
    if (input.errno === 'EMFILE') this.verdicts.see(NO_DESCRIPTOR);
    if (input.errno === 'EADDRNOTAVAIL') this.verdicts.see(NO_SOURCE);
  }

  reported(report: Report): void {
    const { verdicts } = this;
    if (report.kind === 'ListenerFailed') {
      verdicts.see(LISTENER_FAILS);
      if (report.retry !== undefined) this.#failedListeners.add(report.listener);
    } else if (report.kind === 'ListenerOpened') {
      if (this.#failedListeners.delete(report.listener)) verdicts.see(LISTENER_RETRIED);
    } else if (report.kind === 'Stopped') {
      verdicts.see(report.flowsClosed > 0 ? STOPPED_SHORT : STOPPED_EMPTY);
    }
  }

  control(process: ProcessNumber, output: ControlOutput): void {
    if (output.kind === 'Event') this.#told(output.event);
    else if (output.kind === 'Reply') this.#replied(process, output.reply);
  }

  #told(event: ControlEvent): void {
    const { verdicts } = this;
    switch (event.kind) {
      case 'HealthChanged':
        if (event.evidence.kind === 'probe')
          verdicts.see(event.to === 'up' ? PROBE_UP : PROBE_DOWN);
        return;
      case 'BackendEjected':
        return verdicts.see(EJECTED);
      case 'BackendReturned':
        return verdicts.see(event.reason === 'time-over' ? RETURNED : LAST_RETURNED);
      case 'NoAvailableBackends':
        return verdicts.see(NOBODY);
      case 'ClusterRecovered':
        return verdicts.see(RECOVERED);
      case 'BackendDrained':
        if (event.reason === 'empty') verdicts.see(DRAINED_EMPTY);
        else if (event.flowsLeft > 0) verdicts.see(DRAINED_LATE);
        return;
      default:
    }
  }

  #replied(process: ProcessNumber, reply: Reply): void {
    const { verdicts } = this;
    if (!reply.ok) return verdicts.see(REFUSED[reply.error.kind]);
    const { answer } = reply;
    if (answer === undefined) return;
    if (answer.kind === 'Previewed') verdicts.see(PREVIEWED);
    if (answer.kind === 'Why') verdicts.see(EXPLAINED);
    if (answer.kind === 'Flows' && answer.flows.length > 0) verdicts.see(LISTED);
    if (answer.kind === 'Reloaded') this.#reloaded(process, answer.commands);
  }

  #reloaded(process: ProcessNumber, commands: number): void {
    const { verdicts } = this;
    // The first one is how a process starts.
    if (!this.#configured.has(process)) this.#configured.add(process);
    else if (commands === 0) verdicts.see(RELOADED_NOTHING);
    else if (commands >= MANY_COMMANDS) verdicts.see(RELOADED);
  }

  #translated({ packet: { sent, datagram, raw } }: Extract<PacketFate, { packet: unknown }>): void {
    if (raw || sent.src.a === datagram.src.a) return;
    const key = `${sent.src.a}:${sent.src.port}>${sent.dst.a}:${sent.dst.port}`;
    const before = this.#publicPorts.get(key);
    if (before !== undefined && before !== datagram.src.port) this.verdicts.see(REMAPPED);
    this.#publicPorts.set(key, datagram.src.port);
  }

  #isMapped(port: number): boolean {
    return this.#spec.proxies.some(({ config }) =>
      config.listeners.some(
        ({ address }) => address.port === port && address.family === 6 && isUnspecified(address),
      ),
    );
  }
}
