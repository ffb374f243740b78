/**
 * Every datagram ends exactly once, at every hop: between the parties and the network, between the network and a proxy's
 * kernel, in that kernel, between it and the plane, and in the plane. What went into a hop came out of it, is still in it, or
 * was dropped there for a reason that is counted; and what two neighbours count of their border is the same.
 */
import { unaccountedDatagrams } from '../../../core/metrics.ts';
import type { SocketId } from '../../../core/brand.ts';
import type { PlaneInput, PlaneOutput } from '../../../core/plane-contract.ts';
import { always, type Property } from '../../properties.ts';
import type { ProcessNumber, ProcessTotals } from '../facts.ts';
import type { Oracle, OracleKind } from '../oracle.ts';
import { ipKey, type AddressKey, type PacketFate } from '../packet.ts';
import type { WorldSpec } from '../spec.ts';
import type { Verdicts } from '../verdicts.ts';

const ENDS_ONCE: Property<'always'> = always('every datagram ends exactly once');
const HEARS_ALL: Property<'always'> = always('a proxy counts what its kernel handed over');
const SENDS_ALL: Property<'always'> = always('a proxy counts what its kernel took');
const TOLD: Property<'always'> = always('a proxy counts what its plane was told');
const SAID: Property<'always'> = always('a proxy counts what its plane sent and did not get back');
const RECEIVED: Property<'always'> = always('a kernel received what the network delivered');
const KEPT: Property<'always'> = always('what a kernel received it handed over, lost or still has');
const LEFT: Property<'always'> = always('what a kernel took has left, is lost, or still leaves');
const GONE: Property<'always'> = always('what left a kernel is in the network');
const PARTIES: Property<'always'> = always('parties and network count the same datagrams');
const NETWORK: Property<'always'> = always(
  'a packet arrives or is lost as often as there is of it',
);

export const CONSERVATION: OracleKind = {
  name: 'conservation',
  begin: (verdicts, spec) => oracleOf(new Ledger(verdicts, spec)),
};

function oracleOf(ledger: Ledger): Oracle {
  return {
    hearings: {
      Packet: (fate) => ledger.packet(fate),
      ClientSent: () => (ledger.clients.said += 1),
      ClientHeard: () => (ledger.clients.heard += 1),
      BackendSent: () => (ledger.backends.said += 1),
      BackendHeard: () => (ledger.backends.heard += 1),
      Started: ({ process, proxy }) => ledger.started(process, proxy),
      DataInput: ({ process, plane, input }) => ledger.input(process, plane, input),
      DataOutput: ({ process, plane, output }) => ledger.output(process, plane, output),
      Counted: (totals) => ledger.counted(totals),
    },
    finish: () => ledger.checkParties(),
  };
}

/** What passed a border with the network: as it says, and as whoever is behind it says. */
interface Border {
  sent: number;
  delivered: number;
  said: number;
  heard: number;
}

/** What passed the planes of a process. */
interface Planes {
  readonly host: Border;
  clientsTold: number;
  backendsTold: number;
  opensFailed: number;
  /** Sent, less what came back. */
  toBackends: number;
  toClients: number;
  /** Of a plane's socket that did not open: lost, unless it is opened again before that plane hears anything else. */
  readonly unsent: ({ readonly socket: SocketId; readonly count: number } | undefined)[];
}

class Ledger {
  readonly clients: Border = newBorder();
  readonly backends: Border = newBorder();
  readonly #verdicts: Verdicts;
  readonly #byIp = new Map<AddressKey, Border>();
  readonly #proxies: Border[];
  readonly #planes = new Map<ProcessNumber, Planes>();
  /** How many of a packet are under way, while any is. */
  readonly #underWay = new Map<number, number>();

  constructor(verdicts: Verdicts, { clientHosts, backends, proxies }: WorldSpec) {
    this.#verdicts = verdicts;
    this.#proxies = proxies.map(newBorder);
    for (const { ips } of clientHosts)
      for (const ip of ips) this.#byIp.set(ipKey(ip), this.clients);
    for (const { address } of backends) this.#byIp.set(ipKey(address), this.backends);
    for (const [number, { shape }] of proxies.entries()) {
      const border = this.#proxies[number] ?? newBorder();
      for (const ip of shape.addresses) this.#byIp.set(ipKey(ip), border);
    }
  }

  packet({ kind, packet }: PacketFate): void {
    this.#follow(kind, packet.serial);
    if (packet.kind !== 'datagram') return;
    const { src, dst } = packet.datagram;
    if (kind === 'sent') {
      const border = packet.raw ? undefined : this.#byIp.get(ipKey(src));
      if (border !== undefined) border.sent += 1;
    } else if (kind === 'delivered') {
      const border = this.#byIp.get(ipKey(dst));
      if (border !== undefined) border.delivered += 1;
    }
  }

  /** From here on its proxy's kernel counts for this process. */
  started(process: ProcessNumber, proxy: number): void {
    const host = this.#proxies[proxy] ?? newBorder();
    host.sent = 0;
    host.delivered = 0;
    const told = { clientsTold: 0, backendsTold: 0, opensFailed: 0 };
    this.#planes.set(process, { host, ...told, toBackends: 0, toClients: 0, unsent: [] });
  }

  input(process: ProcessNumber, plane: number, input: PlaneInput): void {
    const planes = this.#planes.get(process);
    if (planes === undefined) return;
    writeOff(planes, plane);
    if (input.kind === 'ClientArrived') planes.clientsTold += 1;
    else if (input.kind === 'BackendArrived') planes.backendsTold += 1;
    else if (input.kind === 'OpenFailed') {
      planes.opensFailed += 1;
      planes.unsent[plane] = { socket: input.socket, count: input.unsent };
    } else if (input.kind === 'SendFailed') {
      if (input.failure.direction === 'to-backend') planes.toBackends -= 1;
      else planes.toClients -= 1;
    }
  }

  output(process: ProcessNumber, plane: number, output: PlaneOutput): void {
    const planes = this.#planes.get(process);
    if (planes === undefined) return;
    if (output.kind === 'SendToBackend') planes.toBackends += 1;
    else if (output.kind === 'SendToClient') planes.toClients += 1;
    else if (output.kind === 'OpenUpstream' || output.kind === 'RefuseUpstream') {
      if (planes.unsent[plane]?.socket === output.socket) planes.unsent[plane] = undefined;
    }
  }

  counted(totals: ProcessTotals): void {
    const planes = this.#planes.get(totals.process);
    if (planes !== undefined) {
      for (const plane of planes.unsent.keys()) writeOff(planes, plane);
      this.#checkPlanes(totals, planes);
    }
    this.#checkKernel(totals);
    this.checkParties();
  }

  checkParties(): void {
    for (const [who, border] of Object.entries({
      clients: this.clients,
      backends: this.backends,
    })) {
      const { said, sent, heard, delivered } = border;
      this.#verdicts.check(PARTIES, said === sent && heard === delivered, () => {
        return `${who} sent ${said} of ${sent} and heard ${heard} of ${delivered}`;
      });
    }
  }

  /** The planes against their counters, and their kernel against the network. */
  #checkPlanes({ process, counters, kernelIn, kernelOut }: ProcessTotals, planes: Planes): void {
    const { clientReceived, backendReceived, upstreamOpenFailed, forwarded, returned } = counters;
    const { clientsTold, backendsTold, opensFailed, toBackends, toClients, host } = planes;
    const told = [clientsTold, backendsTold, opensFailed].join(', ');
    const counted = [clientReceived, backendReceived, upstreamOpenFailed].join(', ');
    this.#verdicts.check(TOLD, told === counted, () => {
      return `process ${process} was told of ${told} from clients, from backends and of opens that failed, and counts ${counted}`;
    });
    const said = toBackends === forwarded && toClients === returned;
    this.#verdicts.check(SAID, said, () => {
      return `process ${process} sent ${toBackends} and ${toClients}, and counts ${forwarded} and ${returned}`;
    });
    this.#verdicts.check(RECEIVED, host.delivered === kernelIn.received, () => {
      return `process ${process}: ${host.delivered} delivered, ${kernelIn.received} received`;
    });
    this.#verdicts.check(GONE, host.sent === kernelOut.left, () => {
      return `process ${process}: ${kernelOut.left} left, ${host.sent} sent`;
    });
  }

  #checkKernel(totals: ProcessTotals): void {
    const { process, counters, waiting, kernelIn, kernelOut, kernelWaiting, probes } = totals;
    const who = `process ${process}`;
    const held = unaccountedDatagrams(counters);
    this.#verdicts.check(ENDS_ONCE, held === waiting, () => {
      return `${who} has not accounted for ${held} datagrams, and ${waiting} wait`;
    });
    const received = counters.clientReceived + counters.backendReceived;
    this.#verdicts.check(HEARS_ALL, received === kernelIn.taken, () => {
      return `${who} counts ${received} datagrams, and took ${kernelIn.taken}`;
    });
    const sent = counters.forwarded + counters.returned;
    const { accepted, failedLate, untold, left, stalled, leaving, leavingBefore } = kernelOut;
    const late = counters.sendFailedLate;
    this.#verdicts.check(SENDS_ALL, sent === accepted && late + untold === failedLate, () => {
      return `${who} counts ${sent} sent and ${late} failed late; its kernel took ${accepted}, and ${failedLate} failed, ${untold} untold`;
    });
    const { overflowed, strange, unheard, taken, abandoned } = kernelIn;
    const lost = overflowed + strange + unheard + abandoned;
    const kept = kernelIn.received === taken + probes.taken + lost + kernelWaiting;
    this.#verdicts.check(KEPT, kept, () => `${who}: ${JSON.stringify({ ...kernelIn, probes })}`);
    const took = accepted + probes.accepted + leavingBefore;
    const went = left + stalled + failedLate + probes.failedLate + leaving;
    this.#verdicts.check(LEFT, took === went, () => `${who}: took ${took}, of which ${went} went`);
  }

  /** Copies share a serial number. */
  #follow(kind: PacketFate['kind'], serial: number): void {
    if (kind === 'reordered' || kind === 'corrupted') return;
    const ends = kind === 'delivered' || kind === 'lost';
    const count = (this.#underWay.get(serial) ?? 0) + (ends ? -1 : 1);
    this.#verdicts.check(NETWORK, count >= 0, () => `packet ${serial} has ended too often`);
    if (count === 0) this.#underWay.delete(serial);
    else this.#underWay.set(serial, count);
  }
}

function newBorder(): Border {
  return { sent: 0, delivered: 0, said: 0, heard: 0 };
}

/** Nobody opened the socket again. */
function writeOff(planes: Planes, plane: number): void {
  const unsent = planes.unsent[plane];
  if (unsent === undefined) return;
  planes.toBackends -= unsent.count;
  planes.unsent[plane] = undefined;
}
