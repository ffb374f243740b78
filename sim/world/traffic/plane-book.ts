/** The book of one plane: the input under way, the lines it has, and what became of each datagram it was told of. */
import type { Address } from '../../../core/address.ts';
import { assertNever } from '../../../core/assert.ts';
import { listenerOf, type SocketId } from '../../../core/brand.ts';
import type { PlaneInput, PlaneOutput } from '../../../core/plane-contract.ts';
import type { SendFailed } from '../../../core/ports.ts';
import { after, instant, type Instant } from '../../../core/time.ts';
import { isTrainOutput } from '../../../core/train.ts';
import { OPEN_BACK_OFF } from '../../../core/upstream-sources.ts';
import type { OfPlane } from '../facts.ts';
import { expect, flowKey, type Expectation, type Lacks } from './expectation.ts';
import { isTooMuch, Lines, replyOn, requestOn } from './lines.ts';
import { Outbox } from './outbox.ts';
import { hashOf, type DropCounter, type Line, type Parcel } from './parcel.ts';
import { ToldPlane, type ToldListener } from './told-plane.ts';
import type { Astray, Losses, SendOutput, TrafficWatch } from './traffic-book.ts';

type Input<Kind extends PlaneInput['kind']> = Extract<PlaneInput, { kind: Kind }>;
type Output<Kind extends PlaneOutput['kind']> = Extract<PlaneOutput, { kind: Kind }>;
type Opened = Output<'OpenUpstream' | 'RefuseUpstream'>;

/** What the plane is doing about its latest input. */
interface UnderWay {
  readonly input: PlaneInput;
  readonly hash: number;
  /** Of a client datagram: where it came, and what may become of it. */
  readonly asked: Asked | undefined;
  /** Whether it went on, or was put behind others. */
  isSent: boolean;
  /** A line was opened for it. */
  hasOpened: boolean;
  /** The line whose socket closed. */
  closed: Line | undefined;
}

interface Asked {
  readonly input: Input<'ClientArrived'>;
  readonly listener: ToldListener;
  readonly expected: Expectation;
}

export class PlaneBook {
  readonly losses: Losses = { certain: new Map(), possible: new Map() };
  readonly #told: ToldPlane;
  readonly #lines: Lines;
  readonly #outbox: Outbox = new Outbox((counter) => this.#lose(counter));
  readonly #watches: readonly TrafficWatch[];
  readonly #lackedUntil = { descriptors: instant(0), ports: instant(0) };
  #underWay: UnderWay | undefined;
  /** The line whose socket closed in this timeout, last of all. */
  #closedByTimer: Line | undefined;

  constructor(whose: OfPlane, hosts: readonly Address[], watches: readonly TrafficWatch[]) {
    this.#lines = new Lines(whose);
    this.#told = new ToldPlane(hosts);
    this.#watches = watches;
  }

  /** `now` is the plane's. */
  input(input: PlaneInput, now: Instant): void {
    this.conclude();
    this.#closedByTimer = undefined;
    const isArrival = input.kind === 'ClientArrived' || input.kind === 'BackendArrived';
    this.#underWay = {
      input,
      hash: isArrival ? hashOf(input.payload) : 0,
      asked: input.kind === 'ClientArrived' ? this.#asked(input, now) : undefined,
      isSent: false,
      hasOpened: false,
      closed: undefined,
    };
    if (input.kind === 'SendFailed') this.#sendFailed(input.failure);
    else if (input.kind === 'Directed') this.#told.obey(input.message);
    else if (input.kind === 'Flushed') this.#flushed();
    else if (input.kind === 'OpenFailed') this.#learnLack(lackOf(input), now);
    else if (input.kind === 'ListenerAnswer' && input.errno === undefined)
      this.#listenerOpened(this.#told.listeners.get(input.listener));
  }

  timeout(): void {
    this.conclude();
    this.#closedByTimer = undefined;
  }

  /** Whoever watches a plane is told of the datagrams of a train one by one. */
  output(output: PlaneOutput): void {
    if (isTrainOutput(output)) return undefined;
    switch (output.kind) {
      case 'OpenUpstream':
      case 'RefuseUpstream':
        return this.#opened(output);
      case 'CloseUpstream':
        this.#joinBeforeClose();
        return this.#closed(output.socket);
      case 'CloseListener':
        return this.#listenerClosed(this.#told.listeners.get(output.listener));
      case 'SendToBackend':
      case 'SendToClient':
        return this.#sent(output);
      case 'OpenListener':
      case 'WatchUpstream':
      case 'WatchListener':
      case 'Report':
        return undefined;
      default:
        return assertNever(output);
    }
  }

  /** The plane has done all it does about its input. */
  conclude(): void {
    const now = this.#underWay;
    this.#underWay = undefined;
    if (now !== undefined && !now.isSent) this.#done(now);
  }

  #asked(input: Input<'ClientArrived'>, now: Instant): Asked | undefined {
    const listener = this.#told.listeners.get(input.listener);
    if (listener === undefined) return undefined;
    const { src, local, payload } = input;
    const { descriptors, ports } = this.#lackedUntil;
    const lacks = { descriptors: now < descriptors, ports: now < ports };
    const expected = expect(this.#told, { listener, src, local, payload }, lacks);
    return { input, listener, expected };
  }

  #sendFailed(failure: SendFailed): void {
    const holder =
      failure.direction === 'to-backend'
        ? this.#lines.at(failure.socket)
        : this.#told.listeners.get(failure.listener);
    if (holder !== undefined) this.#outbox.failed(failure, holder);
  }

  /** New flows may be refused for it for so long; how long depends on what is tried meanwhile. */
  #learnLack(lack: keyof Lacks | undefined, now: Instant): void {
    if (lack !== undefined) this.#lackedUntil[lack] = after(now, OPEN_BACK_OFF.longest);
  }

  #flushed(): void {
    if (this.#outbox.flushed()) return;
    this.#told.flushed();
    this.#lines.flushed();
  }

  #opened(output: Opened): void {
    const now = this.#underWay;
    if (now === undefined) {
      // The timer gives up a socket that had no room for too long.
      if (this.#closedByTimer !== undefined) this.#renewed(this.#closedByTimer, output);
      return;
    }
    if (this.#lines.at(output.socket) !== undefined) {
      // The next source for a socket that did not open: what waited for it is not lost after all.
      if (now.input.kind === 'OpenFailed') now.isSent = true;
    } else if (now.asked !== undefined) this.#openedFor(now.asked, now, output);
    else if (now.input.kind === 'SendFailed' && now.closed !== undefined)
      this.#renewed(now.closed, output);
  }

  #openedFor({ input, listener, expected }: Asked, now: UnderWay, output: Opened): void {
    const cluster = this.#told.clusterOf(listener);
    if (cluster === undefined) return;
    const { known } = expected;
    const { src: client, local } = input;
    const { socket, backend } = output;
    const before = expected.fate === 'close' ? undefined : known;
    now.hasOpened = true;
    const line = this.#lines.open({ socket, backend, listener, cluster, client, local, before });
    const how = known === undefined ? 'admitted' : 'moved';
    for (const watch of this.#watches) watch.opened?.(line, how, known, expected);
  }

  #renewed(before: Line, { socket, backend }: Opened): void {
    const line = this.#lines.open({ ...before, socket, backend, before });
    for (const watch of this.#watches) watch.opened?.(line, 'renewed', before, undefined);
  }

  #closed(socket: SocketId): void {
    const line = this.#lines.at(socket);
    if (line === undefined) return;
    if (this.#underWay === undefined) this.#closedByTimer = line;
    else this.#underWay.closed = line;
    this.#lines.close(line);
    this.#outbox.closed(line);
  }

  #listenerClosed(listener: ToldListener | undefined): void {
    if (listener === undefined) return;
    listener.isClosed = true;
    this.#outbox.closed(listener);
  }

  /** For the first time, or in the place of a socket that was given up. */
  #listenerOpened(listener: ToldListener | undefined): void {
    if (listener !== undefined) listener.isClosed = false;
  }

  /** A flow that closes with its last datagram has put that behind the others first. */
  #joinBeforeClose(): void {
    const now = this.#underWay;
    if (now === undefined || now.isSent) return;
    const { input, asked } = now;
    const { fate, known } = asked?.expected ?? {};
    const joins = fate === 'keep' && known?.queue !== undefined;
    if (!joins && input.kind !== 'BackendArrived') return;
    now.isSent = true;
    this.#done(now);
  }

  #sent(output: SendOutput): void {
    const now = this.#underWay;
    let parcel: Parcel | Astray = 'line';
    if (now !== undefined)
      parcel =
        output.kind === 'SendToBackend'
          ? this.#toBackend(output, now)
          : this.#toClient(output, now);
    if (typeof parcel === 'string') {
      for (const watch of this.#watches) watch.astray?.(output, parcel);
      return;
    }
    this.#outbox.handed(parcel);
    for (const watch of this.#watches) watch.sent?.(parcel, output);
  }

  #toBackend(output: Output<'SendToBackend'>, now: UnderWay): Parcel | Astray {
    const line = this.#lines.at(output.socket);
    if (line === undefined) return 'line';
    if (now.input.kind === 'Flushed') return this.#again(output, line);
    if (now.input.kind === 'UpstreamWritable')
      return this.#outbox.takeOffer(line, output.payload) ?? 'bytes';
    if (now.asked === undefined || now.isSent) return 'twice';
    const { listener, input, expected } = now.asked;
    const key = flowKey(listener, input.src, input.local);
    if (listener.flows.get(key) !== line) return 'line';
    // Not past those that wait, and not as something else.
    if (!this.#outbox.isFree(line) || hashOf(output.payload) !== now.hash) return 'bytes';
    now.isSent = true;
    if (!expected.goes) this.#spared(expected);
    return requestOn(line, output.payload.length, now.hash, false);
  }

  #toClient(output: Output<'SendToClient'>, now: UnderWay): Parcel | Astray {
    const { input } = now;
    const listener = this.#told.listeners.get(output.listener);
    if (listener === undefined) return 'line';
    if (input.kind === 'ListenerWritable')
      return this.#outbox.takeOffer(listener, output.payload) ?? 'bytes';
    if (input.kind !== 'BackendArrived' || now.isSent) return 'twice';
    const line = this.#lines.at(input.socket);
    if (line === undefined || line.listener !== listener) return 'line';
    if (listener.queue !== undefined || hashOf(output.payload) !== now.hash) return 'bytes';
    now.isSent = true;
    return replyOn(line, output.payload.length, now.hash);
  }

  /** What was refused in the first flush, in its order. */
  #again({ payload }: Output<'SendToBackend'>, line: Line): Parcel | Astray {
    const parcel = this.#outbox.refused.shift();
    if (parcel === undefined) return 'twice';
    if (parcel.line !== line) return 'line';
    return parcel.hash === hashOf(payload) ? parcel : 'bytes';
  }

  #done(now: UnderWay): void {
    const { input, asked } = now;
    if (asked !== undefined) this.#clientDone(asked, now);
    else if (input.kind === 'BackendArrived') this.#backendDone(input, now.hash);
    else if (input.kind === 'OpenFailed') this.#openFailed(input);
  }

  #clientDone({ expected, input }: Asked, { hash, hasOpened }: UnderWay): void {
    const { known, fate, goes, drops, beside } = expected;
    if (goes && fate !== 'close' && !hasOpened && known?.queue !== undefined)
      return this.#joined(known, input.payload.length, hash, drops);
    const [only] = drops;
    if (only === undefined || hasOpened) return this.#vanished(input);
    if (drops.length > 1) this.#mayLose(drops);
    else this.#lose(only);
    if (beside !== undefined) this.#lose(beside);
  }

  /** Behind others of its line; or it was dropped for a rate. */
  #joined(line: Line, bytes: number, hash: number, drops: readonly DropCounter[]): void {
    const isDoubtful = drops.length > 0;
    if (isDoubtful) this.#mayLose([...drops, 'droppedWqFull', 'droppedClosed']);
    this.#outbox.enqueue(requestOn(line, bytes, hash, isDoubtful));
  }

  #backendDone(input: Input<'BackendArrived'>, hash: number): void {
    const { socket, payload } = input;
    const line = this.#lines.at(socket);
    const listener = line?.listener ?? this.#told.listeners.get(listenerOf(socket));
    if (listener === undefined) return;
    if (line?.isOpen !== true) this.#lose('droppedUnknownFlow');
    else if (isTooMuch(line, payload.length)) this.#lose('droppedAmplification');
    else if (listener.queue === undefined) this.#vanished(input);
    else this.#outbox.enqueue(replyOn(line, payload.length, hash));
  }

  /** No other source is tried: what waited for the socket is lost. */
  #openFailed(input: Input<'OpenFailed'>): void {
    const line = this.#lines.at(input.socket);
    const lost = line === undefined ? 0 : this.#outbox.unsent(line, input.unsent);
    const counter = lackOf(input) === 'ports' ? 'droppedPortExhausted' : 'droppedUnknownFlow';
    for (let left = lost; left > 0; left--) this.#lose(counter);
  }

  #spared(expected: Expectation): void {
    for (const watch of this.#watches) watch.spared?.(expected);
  }

  #vanished(input: PlaneInput): void {
    for (const watch of this.#watches) watch.vanished?.(input);
  }

  #lose(counter: DropCounter | 'loopsRefused' | 'headersRefused'): void {
    const { certain } = this.losses;
    certain.set(counter, (certain.get(counter) ?? 0) + 1);
  }

  #mayLose(counters: readonly DropCounter[]): void {
    const { possible } = this.losses;
    for (const counter of counters) possible.set(counter, (possible.get(counter) ?? 0) + 1);
  }
}

/** What a socket lacked that did not open. Without a source of ours no address is missing. */
function lackOf({ errno, source }: Input<'OpenFailed'>): keyof Lacks | undefined {
  if (['EMFILE', 'ENFILE', 'ENOMEM', 'ENOBUFS'].includes(errno)) return 'descriptors';
  if (errno === 'EADDRINUSE' || errno === 'EAGAIN') return 'ports';
  return errno === 'EADDRNOTAVAIL' && source !== undefined ? 'ports' : undefined;
}
