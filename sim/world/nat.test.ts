import { describe, expect, test } from 'vitest';
import { seconds } from '../../core/time.ts';
import { chiSquareFits } from '../../test/chi-square.ts';
import { a, b, datagramOf, HOME, NAT_IP, NetworkRig, p, q } from '../../test/network-rig.ts';
import type { NatSettings } from './nat.ts';

const SURELY = { numerator: 1, denominator: 1 };

describe('translation', () => {
  test('the public sees one address, and its answers find the private socket', () => {
    const rig = new NatRig();
    const one = rig.publicPort(p(1_000));
    const two = rig.publicPort(q(1_000));
    expect(one).not.toBe(two);
    expect(rig.publicPort(p(1_000))).toBe(one);
    expect(rig.answer(one)).toEqual(['192.168.0.1:1000']);
    expect(rig.answer(two)).toEqual(['192.168.0.2:1000']);
    expect(rig.nat.live(rig.clock.now())).toBe(2);
    for (const port of [one, two]) {
      expect(port).toBeGreaterThanOrEqual(40_000);
      expect(port).toBeLessThan(41_000);
    }
  });

  test('a socket has one port for all peers, or one for each', () => {
    const cone = new NatRig();
    expect(cone.publicPort(p(1_000), b(53))).toBe(cone.publicPort(p(1_000), a(53)));
    const symmetric = new NatRig({ mapping: 'endpoint-dependent' });
    const port = symmetric.publicPort(p(1_000), b(53));
    expect(symmetric.publicPort(p(1_000), a(53))).not.toBe(port);
    expect(symmetric.publicPort(p(1_000), b(53))).toBe(port);
  });

  test('strangers are kept out, or let in', () => {
    for (const [filtering, heard] of [
      ['endpoint-dependent', []],
      ['endpoint-independent', ['192.168.0.1:1000']],
    ] as const) {
      const rig = new NatRig({ filtering });
      const port = rig.publicPort(p(1_000), b(53));
      expect(rig.answer(port, a(99))).toEqual(heard);
      expect(rig.answer(port, b(99))).toEqual(heard);
      expect(rig.lost['no-mapping'] ?? 0).toBe(2 - 2 * heard.length);
    }
  });

  test('a refusal comes back to the private socket, with the private address', () => {
    const rig = new NatRig();
    rig.send(p(1_000), b(54), 'hello');
    expect(rig.finish()).toEqual(['4000: 192.168.0.1:1000 refused at 10.0.0.2:54 hello']);
  });

  test('a closed private port refuses under the public address', () => {
    const rig = new NatRig();
    const port = rig.publicPort(p(1_000));
    rig.network.detach(p(1_000));
    rig.send(b(53), { ...NAT_IP, port }, 'answer');
    expect(rig.finish()).toEqual([`6000: 10.0.0.2:53 refused at 10.0.0.254:${port} answer`]);
  });

  test('neighbours need no translation, and nobody outside can name them', () => {
    const rig = new NatRig();
    rig.send(p(1_000), q(1_000), 'hello');
    rig.send(b(53), p(1_000), 'stranger');
    expect(rig.finish()).toEqual(['2000: 192.168.0.2:1000 heard 192.168.0.1:1000 hello']);
    expect(rig.lost).toEqual({ 'no-host': 1 });
    expect(rig.nat.live(rig.clock.now())).toBe(0);
  });

  test('a private host reaches its neighbour by the public address too', () => {
    const rig = new NatRig({ filtering: 'endpoint-independent' });
    const port = rig.publicPort(q(1_000));
    rig.send(p(1_000), { ...NAT_IP, port }, 'hello');
    expect(rig.finish()[0]).toMatch(/192\.168\.0\.2:1000 heard 10\.0\.0\.254:4\d+ hello/);
  });

  test('a raw sender gets past it', () => {
    const rig = new NatRig();
    rig.network.sendRaw('p', datagramOf(a(7), b(53), 'lie'));
    expect(rig.finish()).toEqual(['2000: 10.0.0.2:53 heard 10.0.0.1:7 lie']);
    expect(rig.nat.live(rig.clock.now())).toBe(0);
  });
});

describe('the end of a mapping', () => {
  test('it ends when nothing came for the idle time, from either side', () => {
    const rig = new NatRig();
    const port = rig.publicPort(p(1_000));
    // A packet passes the NAT a millisecond before it is heard, and the next one a millisecond after it is sent.
    const barely = seconds(30) - 2_001;
    rig.rest(barely);
    expect(rig.publicPort(p(1_000))).toBe(port);
    rig.rest(barely);
    expect(rig.answer(port)).toEqual(['192.168.0.1:1000']);
    rig.rest(barely);
    expect(rig.publicPort(p(1_000))).toBe(port);
    rig.rest(barely + 1);
    expect(rig.answer(port)).toEqual([]);
    expect(rig.publicPort(p(1_000))).not.toBe(port);
    expect(rig.lost).toEqual({ 'no-mapping': 1 });
  });

  test('a rebound socket has another port at once, and its old one leads nowhere', () => {
    const rig = new NatRig();
    const before = rig.publicPort(p(1_000));
    const other = rig.publicPort(p(2_000));
    rig.nat.rebind(p(1_000));
    expect(rig.answer(before)).toEqual([]);
    const now = rig.publicPort(p(1_000));
    expect(now).not.toBe(before);
    expect(rig.answer(now)).toEqual(['192.168.0.1:1000']);
    expect(rig.publicPort(p(2_000))).toBe(other);
  });

  test('chance rebinds as often as it is told', () => {
    const rig = new NatRig({ rebinding: { numerator: 1, denominator: 8 } });
    let last = rig.publicPort(p(1_000));
    const counts = [0, 0];
    for (let sent = 0; sent < 4_000; sent++) {
      const port = rig.publicPort(p(1_000));
      counts[Number(port !== last)]!++;
      last = port;
    }
    expect(chiSquareFits(counts, [7, 1])).toBe(true);
    rig.nat.setRebinding({ numerator: 0, denominator: 1 });
    last = rig.publicPort(p(1_000));
    for (let sent = 0; sent < 100; sent++) expect(rig.publicPort(p(1_000))).toBe(last);
  });

  test('a restart forgets all mappings', () => {
    const rig = new NatRig();
    const port = rig.publicPort(p(1_000));
    rig.nat.reset();
    expect(rig.nat.live(rig.clock.now())).toBe(0);
    expect(rig.answer(port)).toEqual([]);
    expect(rig.answer(rig.publicPort(p(1_000)))).toEqual(['192.168.0.1:1000']);
  });
});

describe('few ports', () => {
  const ports = { first: 50_000, count: 2 };

  test('all are handed out, and then nobody gets one before another is free', () => {
    const rig = new NatRig({ ports });
    expect(new Set([rig.publicPort(p(1)), rig.publicPort(p(2))])).toEqual(
      new Set([50_000, 50_001]),
    );
    rig.send(p(3), b(53), 'hello');
    expect(rig.finish()).toEqual([]);
    expect(rig.lost).toEqual({ 'nat-full': 1 });
    rig.nat.rebind(p(1));
    expect(rig.publicPort(p(3))).toBeGreaterThanOrEqual(50_000);
  });

  test('another client gets the port of one that went quiet, and the answers meant for it', () => {
    const rig = new NatRig({ ports: { first: 50_000, count: 1 } });
    const port = rig.publicPort(p(1));
    rig.rest(seconds(30));
    expect(rig.publicPort(q(1))).toBe(port);
    expect(rig.answer(port)).toEqual(['192.168.0.2:1']);
  });

  test('a rebound socket keeps its port only when no other is free', () => {
    const rig = new NatRig({ ports, rebinding: SURELY });
    let port = rig.publicPort(p(1));
    for (let round = 0; round < 20; round++) {
      expect(rig.publicPort(p(1))).toBe(100_001 - port);
      port = 100_001 - port;
    }
    rig.nat.setRebinding({ numerator: 0, denominator: 1 });
    const kept = rig.publicPort(p(1));
    rig.publicPort(p(2));
    rig.nat.rebind(p(1));
    expect(rig.publicPort(p(1))).toBe(kept);
  });
});

class NatRig extends NetworkRig {
  constructor(settings: Partial<NatSettings> = {}) {
    super({ nat: { ...HOME, ...settings } });
    this.listen(a(53));
    this.listen(b(53));
    for (const port of [1, 2, 3, 1_000, 2_000]) this.listen(p(port));
    for (const port of [1, 1_000]) this.listen(q(port));
  }

  /** Sends, and returns the port that the receiver sees. */
  publicPort(from: ReturnType<typeof p>, to = b(53)): number {
    this.heard.length = 0;
    this.send(from, to, 'hello');
    this.finish();
    return this.heard[0]!.src.port;
  }

  /** Sends to a public port, and returns who heard it. */
  answer(port: number, from = b(53)): string[] {
    this.log.length = 0;
    this.send(from, { ...NAT_IP, port }, 'answer');
    return this.finish().map((line) => line.split(' ')[1]!);
  }
}
