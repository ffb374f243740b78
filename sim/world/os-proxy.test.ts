/** The production pump and data plane over the simulated operating system, with all of its troubles. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { formatAddress, type Address } from '../../core/address.ts';
import { present } from '../../core/assert.ts';
import { listenerId } from '../../core/brand.ts';
import { DataPlane } from '../../core/data-plane.ts';
import { initialDirectives } from '../../core/directives.ts';
import { unaccountedDatagrams, type ListenerCounters } from '../../core/metrics.ts';
import { Pump } from '../../core/pump.ts';
import { microseconds, milliseconds, seconds } from '../../core/time.ts';
import { LOCAL } from '../../test/driver-bench.ts';
import { clusterSettings, configOf, listenerConfig } from '../../test/plane-bench.ts';
import { plant } from '../../test/planted-bugs.ts';
import { Digest } from '../digest.ts';
import type { OsFaults } from './os-faults.ts';
import { POISON } from './os.ts';
import { PlainWorld, type Program } from './plain-world.ts';

/** Keeps what waits for room without a copy of its own. */
const KEPT_VIEW = {
  name: 'kept-view',
  shows: 'What waits for room goes out with the bytes of a later datagram.',
  file: 'core/egress-queue.ts',
  search: 'payload: new Uint8Array(payload), dst, from',
  replace: 'payload, dst, from',
};

const FEW = { numerator: 1, denominator: 50 };

const TROUBLE: Partial<OsFaults> = {
  sendRate: 2_000_000,
  sendBuffer: 4_000,
  datagramBytes: 1_400,
  receiveBuffer: 20_000,
  noBuffers: FEW,
  upstreamStalls: { numerator: 1, denominator: 500 },
  lateFailures: FEW,
  refusalDelay: milliseconds(5),
  wakeLatency: microseconds(400),
  timer: { early: milliseconds(1), late: milliseconds(3), tick: milliseconds(1) },
};

/** What befalls the host: from when, in milliseconds, and what is different from then on. */
const EPISODES: readonly (readonly [number, Partial<OsFaults>])[] = [
  [0, { ...TROUBLE, descriptors: 10 }],
  [50, { descriptors: undefined, ephemeralPorts: 12 }],
  [100, { ephemeralPorts: undefined }],
  [400, { sendRate: 0 }],
  [500, { sendRate: 2_000_000 }],
  [700, { standstill: 'process' }],
  [750, { standstill: undefined }],
  [800, { standstill: 'clock' }],
  [850, { standstill: undefined }],
];

const cache = join(import.meta.dirname, '../../.cache');
let directory: string;

beforeAll(() => {
  mkdirSync(cache, { recursive: true });
  directory = mkdtempSync(join(cache, 'os-'));
});

afterAll(() => rmSync(directory, { recursive: true }));

describe('a proxy on a troubled host', () => {
  for (let seed = 0; seed < 8; seed++) {
    test(`accounts for every datagram as its host does, and changes no byte: seed ${seed}`, () => {
      const proxy = new ProxyWorld(seed);
      proxy.live();
      const { kernel, os } = proxy.world;
      const { in: came, out: went } = kernel;
      const met = came.overflowed + came.strange + came.unheard + came.taken + came.abandoned;
      expect(came.received).toBe(met + kernel.waiting);
      const failed = [...went.failed.values()].reduce((sum, count) => sum + count, 0);
      const accepted = went.left + went.stalled + went.failedLate + kernel.leaving;
      expect(went.sends).toBe(accepted + failed);
      const counters = proxy.counters();
      expect(counters.clientReceived + counters.backendReceived).toBe(came.taken);
      expect(counters.forwarded + counters.returned).toBe(accepted);
      expect(counters.sendFailedLate).toBe(went.failedLate);
      expect(unaccountedDatagrams(counters)).toBe(proxy.plane.waiting);
      expect(os.socketCount).toBe(1 + proxy.plane.flowCount);
      expect(kernel.descriptors.count).toBe(os.socketCount);
      expect(proxy.changed).toEqual([]);
    });
  }

  test('meets every trouble there is, in a few seeds', () => {
    const errnos = new Set<string>();
    const total = { overflowed: 0, unheard: 0, refusals: 0, stalled: 0, failedLate: 0 };
    for (let seed = 0; seed < 8; seed++) {
      const proxy = new ProxyWorld(seed);
      proxy.live();
      const { in: came, out: went } = proxy.world.kernel;
      for (const errno of [...went.failed.keys(), ...proxy.openErrnos]) errnos.add(errno);
      total.overflowed += came.overflowed;
      total.unheard += came.unheard;
      total.refusals += came.refusals;
      total.stalled += went.stalled;
      total.failedLate += went.failedLate;
    }
    expect([...errnos].sort()).toEqual([
      'EADDRINUSE',
      'EAGAIN',
      'ECONNREFUSED',
      'EMFILE',
      'EMSGSIZE',
      'ENOBUFS',
    ]);
    for (const [what, count] of Object.entries(total)) expect(count, what).toBeGreaterThan(0);
  });

  test('does the same again for the same seed, and something else for another', () => {
    const digests = [5, 6, 5].map((seed) => new ProxyWorld(seed).live());
    expect(digests[2]).toBe(digests[0]);
    expect(digests[1]).not.toBe(digests[0]);
  });

  test('is found out when it keeps a view of what it was lent', async () => {
    plant(KEPT_VIEW, directory);
    const buggy: { DataPlane: typeof DataPlane } = await import(
      join(directory, 'core/data-plane.ts')
    );
    const proxy = new ProxyWorld(0, buggy.DataPlane);
    proxy.live();
    expect(proxy.changed.length).toBeGreaterThan(0);
  });
});

/** Forty clients who ask now and then, and two backends who echo; the second is away for a while. */
class ProxyWorld {
  readonly world: PlainWorld;
  readonly plane: DataPlane;
  /** Datagrams that arrived with other bytes than they were sent with. */
  readonly changed: string[] = [];
  readonly openErrnos = new Set<string>();
  private readonly front: Address;
  private readonly backends: readonly Program[];
  private readonly digest = new Digest();

  constructor(seed: number, Plane = DataPlane) {
    this.world = new PlainWorld({ seed, delay: microseconds(150) });
    const { os, wire, time } = this.world;
    this.backends = [this.program(), this.program()];
    for (const backend of this.backends) {
      backend.heard = ({ from, payload }) => {
        this.check(payload);
        backend.send(from, payload);
      };
    }
    this.plane = new Plane({
      placementSeed: { high: 1, low: 2 },
      tableSeed: { first: 3, second: 4 },
      randomSeed: { high: 5, low: 6 },
    });
    const open = os.openUpstream.bind(os);
    os.openUpstream = (...words) => {
      const errno = open(...words);
      if (errno !== undefined) this.openErrnos.add(errno);
      return errno;
    };
    const pump = new Pump(this.plane, os, () => undefined);
    os.attach(pump);
    const backends = this.backends.map(({ address }, n) => ({
      id: `b${n}`,
      address,
      weight: 100,
      backup: false,
    }));
    const config = configOf(
      [clusterSettings({ backends, frontTimeout: milliseconds(300) })],
      [listenerConfig({ address: LOCAL, maxFlows: 64 })],
    );
    for (const directive of initialDirectives(config)) pump.direct({ generation: 1, directive });
    pump.endTurn();
    this.front = { ...LOCAL, port: present(os.portOf(listenerId(0)), 'the listener is open') };
    wire.tap = ({ src, dst, payload }) => {
      this.digest.number(time.clock.now()).string(formatAddress(src)).string(formatAddress(dst));
      this.digest.bytes(payload);
    };
  }

  /** The whole story; its digest. */
  live(): string {
    const { host, time } = this.world;
    for (const [at, faults] of EPISODES) {
      host.later(milliseconds(at), () => this.world.fault(faults));
    }
    const [, backend] = this.backends;
    host.later(milliseconds(300), () => backend?.close());
    host.later(milliseconds(600), () => backend?.reopen());
    const workload = time.streams.workload;
    for (let n = 0; n < 40; n++) {
      const client = this.program();
      client.heard = ({ payload }) => this.check(payload);
      for (let sent = 0; sent < 30; sent++) {
        const at = milliseconds(workload.between('at', 0, 1_200));
        const payload = new Uint8Array(workload.between('size', 1, 1_500)).fill(1 + n + sent);
        host.later(at, () => client.send(this.front, payload));
      }
    }
    this.world.run(seconds(3));
    this.digest.string(JSON.stringify([this.world.kernel.in, this.counters()]));
    return this.digest.print();
  }

  counters(): Readonly<ListenerCounters> {
    return present(this.plane.countersOf(listenerId(0)), 'the listener is there');
  }

  private program(): Program {
    return this.world.program(LOCAL);
  }

  /** Every byte of a datagram is the same, and never the one that poison is made of. */
  private check(payload: Uint8Array): void {
    const [first] = payload;
    if (first === POISON || payload.some((byte) => byte !== first)) {
      this.changed.push(`${payload.length} bytes from ${String(first)}`);
    }
  }
}
