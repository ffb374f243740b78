/**
 * What is due is done although arrivals never cease: flows that are silent close, commands are answered, probes start. A
 * process may be slow, or at a standstill; but once it has turned so often, and so long, past a date, the date was forgotten.
 */
import { formatAddress } from '../../../core/address.ts';
import type { RequestId } from '../../../core/brand.ts';
import type { ClusterSettings } from '../../../core/config.ts';
import { NO_CLUSTER } from '../../../core/contract.ts';
import type { ControlInput, ControlOutput } from '../../../core/control-contract.ts';
import {
  instant,
  milliseconds,
  seconds,
  until,
  type Duration,
  type Instant,
} from '../../../core/time.ts';
import { always, type Property } from '../../properties.ts';
import type { WorldAction } from '../actions.ts';
import type { ProcessNumber, ProcessSample } from '../facts.ts';
import type { OracleKind } from '../oracle.ts';
import { PerPlane, planesOf } from '../per-plane.ts';
import type { Verdicts } from '../verdicts.ts';
import { LiveFlows, type LiveFlow } from './live-flows.ts';
import { probedBackend, probingOf } from './probed-backends.ts';

const CLOSES: Property<'always'> = always('silent flows close in time whatever arrives');
const ARRIVES: Property<'always'> = always('a command reaches the control plane it is for');
const ANSWERS: Property<'always'> = always('commands are answered in time whatever arrives');
const PROBES: Property<'always'> = always('probes start in time whatever arrives');

/** Turns, and time, that may pass beyond a date that somebody saw pass; and time without so many turns. */
const TURNS_MAX = 64;
const TIME_MAX = milliseconds(500);
const QUIET_TIME_MAX = seconds(3);

export const TIMELINESS: OracleKind = {
  name: 'timeliness',
  begin: (verdicts, spec) => {
    // What its control plane does is timed by the turns of each plane.
    const planes = new PerPlane(() => new Dates(verdicts));
    const orders = new Orders(verdicts, spec.proxies.length);
    return {
      hearings: {
        Acted: ({ action }) => orders.acted(action),
        Started: ({ process, proxy }) => {
          orders.started(process, proxy);
          planes.begin(process, planesOf(spec, proxy));
        },
        DataInput: ({ process, plane, input, now }) =>
          planes.of(process, plane).flows.hearInput(input, now),
        DataTimeout: ({ process, plane, now }) => planes.of(process, plane).flows.hearTimeout(now),
        DataOutput: ({ process, plane, output }) =>
          planes.of(process, plane).flows.hearOutput(output),
        ControlInput: ({ process, input, now }) => {
          if (input.kind === 'Command') orders.arrived(process);
          planes.all(process).forEach((dates) => dates.hearInput(input, now));
        },
        ControlTimeout: ({ process, now }) =>
          planes.all(process).forEach((dates) => (dates.now = now)),
        ControlOutput: ({ process, output }) =>
          planes.all(process).forEach((dates) => dates.hearOutput(output)),
        TurnEnded: (sample) => planes.of(sample.process, sample.plane).turnEnded(sample),
        Crashed: ({ process }) => {
          orders.ended(process);
          planes.delete(process);
        },
        Exited: ({ process }) => {
          orders.ended(process);
          planes.delete(process);
        },
      },
    };
  },
};

/** What operators say to processes. It is with their control planes at once, before anything else happens in the world. */
class Orders {
  readonly #verdicts: Verdicts;
  readonly #proxies: number;
  /** By proxy, the process that runs. */
  readonly #running = new Map<number, ProcessNumber>();
  /** Who was told something last, and has not heard of it. */
  #told: ProcessNumber | undefined;

  constructor(verdicts: Verdicts, proxies: number) {
    this.#verdicts = verdicts;
    this.#proxies = proxies;
  }

  acted(action: WorldAction): void {
    const told = this.#told;
    this.#verdicts.check(ARRIVES, told === undefined, () => `process ${told} heard of nothing`);
    if (action.kind === 'Order') this.#told = this.#running.get(action.proxy % this.#proxies);
  }

  started(process: ProcessNumber, proxy: number): void {
    this.#running.set(proxy, process);
  }

  arrived(process: ProcessNumber): void {
    if (process === this.#told) this.#told = undefined;
  }

  ended(process: ProcessNumber): void {
    this.arrived(process);
    for (const [proxy, one] of this.#running) if (one === process) this.#running.delete(proxy);
  }
}

/** A date that was seen to have passed, and when that was. */
interface Passed {
  readonly of: unknown;
  readonly turns: number;
  readonly now: Instant;
}

/** One kind of dates: the first of them that has passed is watched until it is done. */
class Watch {
  #passed: Passed | undefined;

  /** Whether what is due, if anything is, was forgotten. */
  isForgotten(due: unknown, { turns, now }: ProcessSample): boolean {
    if (due === undefined) this.#passed = undefined;
    else if (this.#passed?.of !== due) this.#passed = { of: due, turns, now };
    if (this.#passed === undefined) return false;
    const time = until(this.#passed.now, now);
    return time > QUIET_TIME_MAX || (time > TIME_MAX && turns - this.#passed.turns > TURNS_MAX);
  }
}

class Dates {
  readonly flows: LiveFlows = new LiveFlows({}, instant(0));
  now: Instant = instant(0);
  readonly #verdicts: Verdicts;
  readonly #requests = new Map<RequestId, { readonly kind: string; readonly at: Instant }>();
  readonly #clusters = new Map<string, ClusterSettings>();
  /** By backend, the date of the next probe at the latest; the oldest start first. */
  readonly #probes = new Map<string, Instant>();
  readonly #ofFlows = new Watch();
  readonly #ofRequests = new Watch();
  readonly #ofProbes = new Watch();

  constructor(verdicts: Verdicts) {
    this.#verdicts = verdicts;
  }

  hearInput(input: ControlInput, now: Instant): void {
    this.now = now;
    if (input.kind === 'Command')
      this.#requests.set(input.request, { kind: input.command.kind, at: now });
    if (input.kind !== 'Reported' || input.report.kind !== 'Stopped') return;
    this.#clusters.clear();
    this.#probes.clear();
  }

  hearOutput(output: ControlOutput): void {
    if (output.kind === 'Reply') this.#requests.delete(output.request);
    else if (output.kind === 'StartProbe') {
      const settings = this.#clusters.get(output.cluster);
      const address = settings && probedBackend(settings, output);
      if (settings === undefined || address === undefined || address === 'unclear') return;
      this.#expect(settings, `${settings.cluster} ${formatAddress(address)}`);
    } else if (output.kind === 'Direct') {
      const { directive } = output.message;
      if (directive.kind === 'SetCluster') this.#set(directive.settings);
      else if (directive.kind === 'RemoveCluster') this.#forget(directive.cluster);
    }
  }

  turnEnded(sample: ProcessSample): void {
    const { process, now } = sample;
    const [socket, flow] = this.flows.firstOpen;
    const silent = flow !== undefined && until(flow.touchedAt, now) > patienceOf(flow);
    this.#verdicts.check(
      CLOSES,
      !this.#ofFlows.isForgotten(silent ? socket : undefined, sample),
      () => {
        return `process ${process}: socket ${socket} is silent since ${flow?.touchedAt}; it is ${now}`;
      },
    );
    const [request, asked] = first(this.#requests);
    this.#verdicts.check(ANSWERS, !this.#ofRequests.isForgotten(request, sample), () => {
      return `process ${process}: ${asked?.kind} was asked at ${asked?.at}; it is ${now}`;
    });
    const [backend, due] = first(this.#probes);
    const isDue = due !== undefined && due < now;
    this.#verdicts.check(
      PROBES,
      !this.#ofProbes.isForgotten(isDue ? backend : undefined, sample),
      () => {
        return `process ${process}: a probe of ${backend} was due at ${due}; it is ${now}`;
      },
    );
  }

  #set(settings: ClusterSettings): void {
    const { cluster } = settings;
    this.#forget(cluster);
    this.#clusters.set(cluster, settings);
    for (const { address } of settings.backends)
      this.#expect(settings, `${cluster} ${formatAddress(address)}`);
  }

  #forget(cluster: string): void {
    this.#clusters.delete(cluster);
    for (const key of this.#probes.keys())
      if (key.startsWith(`${cluster} `)) this.#probes.delete(key);
  }

  /** From one start to the next: the interval, or the time that the first one took. */
  #expect(settings: ClusterSettings, key: string): void {
    this.#probes.delete(key);
    const probing = probingOf(settings);
    if (probing === undefined) return;
    const { probeInterval, probeTimeout } = probing;
    this.#probes.set(key, instant(this.now + Math.max(probeInterval, probeTimeout)));
  }
}

function first<Key, Value>(map: ReadonlyMap<Key, Value>): [Key, Value] | [undefined, undefined] {
  for (const entry of map) return entry;
  return [undefined, undefined];
}

/** How long a flow may be silent at most. */
function patienceOf({ config, settings }: LiveFlow): Duration {
  const front = config?.frontTimeout ?? settings?.frontTimeout ?? NO_CLUSTER.frontTimeout;
  const back = config?.backTimeout ?? settings?.backTimeout ?? NO_CLUSTER.backTimeout;
  const late = settings?.lateReplyGrace ?? NO_CLUSTER.lateReplyGrace;
  return milliseconds(Math.max(front, back, late) / 1_000);
}
