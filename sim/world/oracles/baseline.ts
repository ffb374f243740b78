/**
 * Trouble leaves nothing behind: what waits for room is watched for, an open is refused unseen only shortly after one that
 * failed, and in a world that has healed the queues are empty, the listeners open and the backends up. Whoever is told to
 * stop ends.
 */
import { formatAddress, type Address } from '../../../core/address.ts';
import type { SocketId } from '../../../core/brand.ts';
import type { ControlEvent, ControlInput, ControlOutput } from '../../../core/control-contract.ts';
import type { Directive } from '../../../core/directives.ts';
import type { PlaneInput, PlaneOutput } from '../../../core/plane-contract.ts';
import { after, instant, milliseconds, seconds, until, type Instant } from '../../../core/time.ts';
import { always, sometimes, type Property } from '../../properties.ts';
import type { ProcessNumber, ProcessSample } from '../facts.ts';
import type { OracleKind } from '../oracle.ts';
import { PerPlane, planesOf } from '../per-plane.ts';
import type { Verdicts } from '../verdicts.ts';
import { DirectedState } from './directed.ts';
import { BLOCKED_MAX, Healing } from './healing.ts';

const WATCHED: Property<'always'> = always('whatever waits for room is watched for');
const GIVEN_UP: Property<'always'> = always('a socket without room is given up in time');
const RESTS: Property<'always'> = always('opens are refused unseen only after one that failed');
const EMPTY: Property<'always'> = always('queues are empty in a world that has healed');
const OPEN: Property<'always'> = always('listeners are open in a world that has healed');
const UP: Property<'always'> = always('backends are up in a world that has healed');
const STOPS: Property<'always'> = always('a process that is told to stop ends');
const HEALED: Property<'sometimes'> = sometimes('a world has healed before its drain');

/** The longest rest after an open that failed (upstream-sources.ts), by the clock that says when it is over. */
const REST_MAX = milliseconds(320);

/** What a stop may take beyond its grace: turns, and the way between the planes. */
const STOP_SLACK = seconds(2);

export const BASELINE: OracleKind = {
  name: 'baseline',
  begin: (verdicts, spec) => {
    const healing = new Healing(spec);
    // What a control plane hears and directs leaves its traces with each plane.
    const planes = new PerPlane((process) => new Traces(process, verdicts));
    return {
      hearings: {
        ...healing.hearings,
        PhaseBegan: (fact, at) => {
          if (fact.phase === 'drain' && healing.isSettled(at)) {
            verdicts.see(HEALED);
            for (const traces of planes.values()) traces.healed(healing.sawStalls);
          }
          healing.hearings.PhaseBegan?.(fact, at);
        },
        Started: ({ process, proxy }) => planes.begin(process, planesOf(spec, proxy)),
        DataInput: ({ process, plane, input, now }) =>
          planes.of(process, plane).hearInput(input, now),
        DataOutput: ({ process, plane, output }) => planes.of(process, plane).hearOutput(output),
        ControlInput: ({ process, input, now }, at) => {
          for (const traces of planes.all(process)) traces.hearControl(input, now, at);
        },
        ControlOutput: ({ process, output }) => {
          for (const traces of planes.all(process)) traces.hearControlOutput(output);
        },
        TurnEnded: (sample) => planes.of(sample.process, sample.plane).turnEnded(sample),
        Crashed: ({ process }) => planes.delete(process),
        Exited: ({ process }, at) => {
          for (const traces of planes.all(process)) traces.finish(at);
          planes.delete(process);
        },
      },
      finish: (at) => {
        for (const traces of planes.values()) traces.finish(at);
      },
    };
  },
};

class Traces {
  readonly #process: ProcessNumber;
  readonly #verdicts: Verdicts;
  readonly #directed = new DirectedState();
  /** Since when; who was watched first comes first. */
  readonly #watches = new Map<string, Instant>();
  /** Sockets that were refused unseen, and not tried. */
  readonly #unseen = new Set<SocketId>();
  #failedAt: Instant | undefined;
  #now: Instant = instant(0);
  #sample: ProcessSample | undefined;
  /** Whom data planes were told not to use, and of those whom traffic speaks against: that outlasts what it spoke of. */
  readonly #down = new Set<string>();
  readonly #ejected = new Set<string>();
  #stopAsked: Instant = instant(0);
  #stopsBy: Instant | undefined;

  constructor(process: ProcessNumber, verdicts: Verdicts) {
    this.#process = process;
    this.#verdicts = verdicts;
  }

  hearInput(input: PlaneInput, now: Instant): void {
    this.#now = now;
    switch (input.kind) {
      case 'Directed':
        return this.#directed.hear(input.message);
      case 'UpstreamWritable':
        this.#watches.delete(`socket ${input.socket}`);
        return undefined;
      case 'ListenerWritable':
        this.#watches.delete(`listener ${input.listener}`);
        return undefined;
      case 'OpenFailed':
        if (!this.#unseen.delete(input.socket)) this.#failedAt = now;
        return undefined;
      default:
        return undefined;
    }
  }

  hearOutput(output: PlaneOutput): void {
    switch (output.kind) {
      case 'WatchUpstream':
        this.#watch(`socket ${output.socket}`);
        break;
      case 'WatchListener':
        this.#watch(`listener ${output.listener}`);
        break;
      case 'CloseUpstream':
        this.#watches.delete(`socket ${output.socket}`);
        break;
      case 'CloseListener':
        this.#watches.delete(`listener ${output.listener}`);
        break;
      case 'RefuseUpstream': {
        this.#unseen.add(output.socket);
        const { socket } = output;
        const failedAt = this.#failedAt;
        const isShort = failedAt !== undefined && until(failedAt, this.#now) <= REST_MAX;
        this.#verdicts.check(RESTS, isShort, () => {
          return `process ${this.#process} refused socket ${socket} at ${this.#now}; an open failed at ${failedAt}`;
        });
        break;
      }
      default:
    }
  }

  /** A stop is over after its grace, by whichever order it should be over first. */
  hearControl(input: ControlInput, now: Instant, at: Instant): void {
    if (input.kind !== 'Command') return;
    this.#now = now;
    const { kind } = input.command;
    if (kind === 'SoftStop') this.#stopAsked = at;
    if (kind === 'HardStop') this.#stopBy(at);
  }

  hearControlOutput(output: ControlOutput): void {
    if (output.kind === 'Direct') this.#directive(output.message.directive);
    else if (output.kind === 'Event') this.#event(output.event);
  }

  turnEnded(sample: ProcessSample): void {
    this.#sample = sample;
    const { process, waiting } = sample;
    this.#verdicts.check(WATCHED, waiting === 0 || this.#watches.size > 0, () => {
      return `process ${process}: ${waiting} datagrams wait, and no socket is watched`;
    });
    this.#checkOldest(sample);
  }

  /** Nothing is wrong any more, and long enough. */
  healed(sawStalls: boolean): void {
    const sample = this.#sample;
    if (sample === undefined) return;
    const who = `process ${this.#process}`;
    const { waiting, listeners } = sample;
    // Given up in time is `GIVEN_UP`.
    this.#verdicts.check(EMPTY, waiting === 0 || sawStalls, () => {
      return `${who}: ${waiting} datagrams wait at ${[...this.#watches.keys()].join(', ')}`;
    });
    const wanted = this.#directed.listeners.size;
    this.#verdicts.check(OPEN, listeners === wanted, () => {
      return `${who} has ${listeners} of ${wanted} listeners open`;
    });
    const [down] = [...this.#down].filter((backend) => !this.#ejected.has(backend));
    this.#verdicts.check(UP, down === undefined, () => `${who} keeps new flows from ${down}`);
  }

  finish(at: Instant): void {
    const stopsBy = this.#stopsBy;
    if (stopsBy === undefined) return;
    this.#verdicts.check(STOPS, at <= after(stopsBy, STOP_SLACK), () => {
      return `process ${this.#process} should have ended at ${stopsBy}; it is ${at}`;
    });
  }

  #watch(socket: string): void {
    this.#watches.delete(socket);
    this.#watches.set(socket, this.#now);
  }

  /** The process wakes when the time is over of whoever was watched first. */
  #checkOldest({ process, wake }: ProcessSample): void {
    for (const [socket, since] of this.#watches) {
      const givenUpAt = after(since, BLOCKED_MAX);
      this.#verdicts.check(GIVEN_UP, wake !== undefined && wake.at <= givenUpAt, () => {
        return `process ${process} sleeps until ${wake?.at}; ${socket} has had no room since ${since}`;
      });
      return;
    }
  }

  #stopBy(at: Instant): void {
    this.#stopsBy = this.#stopsBy !== undefined && this.#stopsBy < at ? this.#stopsBy : at;
  }

  #directive(directive: Directive): void {
    switch (directive.kind) {
      case 'SetHealth': {
        const backend = nameOf(directive);
        if (directive.healthy) this.#down.delete(backend);
        else this.#down.add(backend);
        return;
      }
      case 'SetCluster': {
        const { cluster, backends } = directive.settings;
        const names = new Set(backends.map(({ address }) => nameOf({ cluster, address })));
        this.#forget(cluster, (name) => !names.has(name));
        return;
      }
      case 'RemoveCluster':
        this.#forget(directive.cluster, () => true);
        return;
      case 'Drain':
        // The grace is the host's time, and no host's clock stands still once a world has healed.
        this.#stopBy(after(this.#stopAsked, until(this.#now, directive.deadline)));
        return;
      default:
    }
  }

  #forget(cluster: string, isGone: (name: string) => boolean): void {
    for (const set of [this.#down, this.#ejected])
      for (const name of set) if (name.startsWith(`${cluster} `) && isGone(name)) set.delete(name);
  }

  #event(event: ControlEvent): void {
    if (event.kind === 'BackendEjected') this.#ejected.add(nameOf(event));
    else if (event.kind === 'BackendReturned') this.#ejected.delete(nameOf(event));
  }
}

function nameOf({
  cluster,
  address,
}: {
  readonly cluster: string;
  readonly address: Address;
}): string {
  return `${cluster} ${formatAddress(address)}`;
}
