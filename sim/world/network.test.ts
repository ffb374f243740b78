import { describe, expect, test } from 'vitest';
import { ipv6 } from '../../core/address.ts';
import { instant, milliseconds, seconds } from '../../core/time.ts';
import { a, b, c, datagramOf, NetworkRig, nobody } from '../../test/network-rig.ts';
import { FAULTLESS } from './faults.ts';

describe('a datagram', () => {
  test('goes up its sender’s link and down its receiver’s, and takes the time of both', () => {
    const rig = new NetworkRig();
    rig.listen(b(53));
    rig.network.link('a', 'up').setFaults({
      ...FAULTLESS,
      latency: { kind: 'constant', time: milliseconds(5) },
    });
    rig.send(a(1_000), b(53), 'hello');
    expect(rig.network.inFlight).toBe(1);
    expect(rig.finish()).toEqual(['6000: 10.0.0.2:53 heard 10.0.0.1:1000 hello']);
  });

  test('is copied when it is sent', () => {
    const rig = new NetworkRig();
    rig.listen(b(53));
    const datagram = datagramOf(a(1_000), b(53), 'hello');
    rig.network.send(datagram);
    datagram.payload.fill(0);
    expect(rig.finish()).toEqual(['2000: 10.0.0.2:53 heard 10.0.0.1:1000 hello']);
  });

  test('never reaches an endpoint within the call that sent it', () => {
    const rig = new NetworkRig({ links: FAULTLESS });
    rig.listen(b(53));
    rig.send(a(1_000), b(53), 'hello');
    expect(rig.log).toEqual([]);
    expect(rig.finish()).toEqual(['0: 10.0.0.2:53 heard 10.0.0.1:1000 hello']);
  });

  test('finds who is attached when it arrives, and its sender need not be', () => {
    const rig = new NetworkRig();
    rig.listen(b(53));
    rig.send(a(1_000), b(53), 'late');
    rig.network.detach(b(53));
    rig.network.detach(b(53));
    rig.send(a(1_000), b(54), 'early');
    rig.listen(b(54));
    expect(rig.finish()).toEqual(['2000: 10.0.0.2:54 heard 10.0.0.1:1000 early']);
    expect(rig.lost).toEqual({ 'no-port': 2 });
  });

  test('of IPv6 finds its host too, and zones are kept apart', () => {
    const rig = new NetworkRig();
    const one = ipv6([0xfe800000, 0, 0, 1], 53, 1);
    const links = { up: FAULTLESS, down: FAULTLESS };
    rig.network.addHost('one', { ips: [one], ...links });
    rig.network.addHost('two', { ips: [{ ...one, scope: 2 }], ...links });
    rig.listen(one);
    rig.send({ ...one, scope: 2 }, one, 'hello');
    expect(rig.finish()).toEqual(['0: [fe80::1%1]:53 heard [fe80::1%2]:53 hello']);
  });

  test('within a host takes the loopback, whatever befell its links', () => {
    const rig = new NetworkRig();
    for (const place of ['up', 'down'] as const) {
      rig.network.link('a', place).setFaults({ ...FAULTLESS, partitioned: true });
    }
    rig.listen(a(53));
    rig.send(a(1_000), a(53), 'hello');
    expect(rig.finish()).toEqual(['10: 10.0.0.1:53 heard 10.0.0.1:1000 hello']);
  });
});

describe('nobody there', () => {
  test('a closed port is answered after the way there and back, and the quoted datagram is the sent one', () => {
    const rig = new NetworkRig();
    rig.listen(a(1_000));
    rig.send(a(1_000), b(53), 'hello');
    expect(rig.finish()).toEqual(['4000: 10.0.0.1:1000 refused at 10.0.0.2:53 hello']);
    expect(rig.lost).toEqual({ 'no-port': 1 });
    expect(rig.fates.at(-1)).toMatchObject({
      kind: 'delivered',
      packet: { kind: 'unreachable', serial: 2, about: 1 },
    });
  });

  test('the answer takes the same links, and is lost as anything else', () => {
    const rig = new NetworkRig();
    rig.listen(a(1_000));
    rig.network.link('b', 'up').setFaults({ ...FAULTLESS, partitioned: true });
    rig.send(a(1_000), b(53), 'hello');
    expect(rig.finish()).toEqual([]);
    expect(rig.lost).toEqual({ 'no-port': 1, partition: 1 });
  });

  test('an address of nobody is silent, and so is a machine that is off', () => {
    const rig = new NetworkRig();
    rig.listen(a(1_000));
    rig.send(a(1_000), nobody(53));
    rig.network.setRunning('b', false);
    rig.send(a(1_000), b(53));
    rig.send(b(53), a(1_000));
    expect(rig.finish()).toEqual([]);
    expect(rig.lost).toEqual({ 'no-host': 3 });
    rig.network.setRunning('b', true);
    rig.send(a(1_000), b(53));
    expect(rig.finish()).toHaveLength(1);
  });

  test('a peer gets six answers at once and then one a second, another peer its own six', () => {
    const rig = new NetworkRig();
    rig.listen(a(1_000));
    rig.listen(c(1_000));
    for (let sent = 0; sent < 20; sent++) rig.send(a(1_000), b(53));
    rig.send(c(1_000), b(53));
    expect(rig.finish()).toHaveLength(7);
    for (const [rest, answers] of [
      [800_000, 0],
      [200_000, 1],
      [3_000_000, 3],
      [60_000_000, 6],
    ] as const) {
      rig.rest(rest);
      for (let sent = 0; sent < 10; sent++) rig.send(a(1_000), b(53));
      expect(rig.finish()).toHaveLength(answers);
    }
  });

  test('a host answers fifty in all at once and then one a millisecond', () => {
    const rig = new NetworkRig({ links: FAULTLESS });
    const answers = (): number =>
      rig.fates.filter(({ kind, packet }) => kind === 'sent' && packet.kind === 'unreachable')
        .length;
    const fromMany = (first: number): void => {
      for (let peer = first; peer < first + 100; peer++) {
        rig.network.sendRaw('a', datagramOf({ ...a(1_000), a: 0x14000000 + peer }, b(53), ''));
      }
      rig.finish();
    };
    fromMany(0);
    expect(answers()).toBe(50);
    rig.rest(3_000);
    fromMany(100);
    expect(answers()).toBe(53);
  });

  test('what a host says to itself is answered without a limit', () => {
    const rig = new NetworkRig();
    rig.listen(a(1_000));
    for (let sent = 0; sent < 100; sent++) rig.send(a(1_000), a(53));
    expect(rig.finish()).toHaveLength(100);
  });

  test('nothing answers an ICMP error, or a source that cannot be answered', () => {
    const rig = new NetworkRig();
    rig.send(a(1_000), b(53));
    rig.network.sendRaw('a', datagramOf({ ...a(0), a: -1 }, b(53), ''));
    rig.finish();
    expect(rig.ledger.sent).toBe(3);
    expect(rig.lost).toEqual({ 'no-port': 3 });
    const narrow = { ...FAULTLESS, mtu: { bytes: 40, icmp: true } };
    rig.network.link('a', 'up').setFaults(narrow);
    rig.network.sendRaw('a', datagramOf({ ...a(0), a: -1 }, b(53), 'thirteen more'));
    expect(rig.ledger.sent).toBe(4);
  });
});

describe('partitions', () => {
  test('a cut stops one direction between two hosts, and nobody else', () => {
    const rig = new NetworkRig();
    for (const own of [a, b, c]) rig.listen(own(1));
    rig.network.cut('a', 'b');
    for (const from of [a, b, c]) {
      for (const to of [a, b, c]) if (from !== to) rig.send(from(1), to(1));
    }
    expect(rig.finish()).toHaveLength(5);
    expect(rig.fates.filter(({ kind }) => kind === 'lost')).toMatchObject([
      { cause: 'partition', where: 'a>b', packet: { datagram: { src: a(1), dst: b(1) } } },
    ]);
    rig.network.mend('a', 'b');
    rig.send(a(1), b(1));
    expect(rig.finish()).toHaveLength(1);
  });

  test('a partition of one direction of a link leaves the other one', () => {
    const rig = new NetworkRig();
    rig.listen(a(1));
    rig.listen(b(1));
    rig.network.link('a', 'down').addEpisode({
      from: instant(0),
      until: instant(10_000),
      faults: { partitioned: true },
    });
    rig.send(a(1), b(1), 'out');
    rig.send(b(1), a(1), 'in');
    expect(rig.finish()).toEqual(['2000: 10.0.0.2:1 heard 10.0.0.1:1 out']);
  });

  test('healing ends cuts and episodes', () => {
    const rig = new NetworkRig();
    rig.listen(b(1));
    rig.network.cut('a', 'b');
    const week = { from: instant(0), until: instant(604_800_000_000) };
    rig.network.link('a', 'up').addEpisode({ ...week, faults: { held: true } });
    for (const place of ['down', 'loopback'] as const) {
      rig.network.link('b', place).addEpisode({ ...week, faults: { partitioned: true } });
    }
    rig.send(a(1), b(1), 'held');
    rig.network.heal();
    rig.send(a(1), b(1), 'after');
    rig.send(b(2), b(1), 'within');
    expect(rig.finish()).toEqual([
      '10: 10.0.0.2:1 heard 10.0.0.2:2 within',
      '2000: 10.0.0.2:1 heard 10.0.0.1:1 held',
      '2000: 10.0.0.2:1 heard 10.0.0.1:1 after',
    ]);
  });
});

describe('narrow links', () => {
  const narrow = { ...FAULTLESS, mtu: { bytes: 40, icmp: true } };

  test('a sender hears of the narrow link, wherever it is, when it wants to', () => {
    for (const [host, place] of [
      ['a', 'up'],
      ['b', 'down'],
    ] as const) {
      const rig = new NetworkRig({ links: FAULTLESS });
      rig.listen(a(1), true);
      rig.listen(a(2));
      rig.listen(b(53));
      rig.network.link(host, place).setFaults(narrow);
      rig.network.link('a', 'down').setFaults(FAULTLESS);
      rig.send(a(1), b(53), 'thirteen more');
      rig.send(a(2), b(53), 'thirteen more');
      rig.send(a(1), b(53), 'twelve bytes');
      expect(new Set(rig.finish())).toEqual(
        new Set([
          '0: 10.0.0.1:1 too big for 10.0.0.2:53: 40',
          '0: 10.0.0.2:53 heard 10.0.0.1:1 twelve bytes',
        ]),
      );
      expect(rig.lost).toEqual({ 'too-big': 2 });
      const answers = rig.fates.filter(({ packet }) => packet.kind === 'too-big');
      expect(new Set(answers.map(({ packet }) => packet.about))).toEqual(
        new Set(rig.fates.flatMap(({ kind, packet }) => (kind === 'lost' ? packet.serial : []))),
      );
      expect(rig.ledger.delivered).toBe(3);
    }
  });
});

describe('raw senders', () => {
  test('a source that lies gets the answers and the refusals, the liar nothing', () => {
    const rig = new NetworkRig();
    rig.listen(a(1));
    rig.listen(b(53));
    rig.onDelivery = ({ src, dst }): void => {
      if (dst.port === 53) rig.send(dst, src, 'answer');
    };
    rig.network.sendRaw('c', datagramOf(a(1), b(53), 'lie'));
    rig.network.sendRaw('c', datagramOf(a(1), b(54), 'lie'));
    expect(rig.finish()).toEqual([
      '2000: 10.0.0.2:53 heard 10.0.0.1:1 lie',
      '4000: 10.0.0.1:1 heard 10.0.0.2:53 answer',
      '4000: 10.0.0.1:1 refused at 10.0.0.2:54 lie',
    ]);
    expect(rig.fates[0]).toMatchObject({ kind: 'sent', packet: { raw: true } });
  });

  test('a source of nobody may send, but is never answered', () => {
    const rig = new NetworkRig();
    rig.listen(b(53));
    rig.network.sendRaw('c', datagramOf(nobody(1), b(53), 'lie'));
    expect(rig.finish()).toEqual(['2000: 10.0.0.2:53 heard 10.0.0.99:1 lie']);
    expect(() => rig.send(nobody(1), b(53), 'lie')).toThrow('sent raw');
  });
});

describe('the world’s own mistakes', () => {
  test('an address has one host and one endpoint', () => {
    const rig = new NetworkRig();
    rig.listen(a(1));
    expect(() => rig.listen(a(1))).toThrow('10.0.0.1:1 is free');
    expect(() => rig.listen(nobody(1))).toThrow('10.0.0.99:1 is a host');
    const links = { up: FAULTLESS, down: FAULTLESS };
    expect(() => rig.network.addHost('d', { ips: [a(0)], ...links })).toThrow('nobody else');
    expect(() => rig.network.addHost('a', { ips: [nobody(0)], ...links })).toThrow('its name');
    expect(() => rig.network.link('d', 'up')).toThrow('d is a host');
    const episode = { from: instant(0), until: instant(0), faults: {} };
    expect(() => rig.network.link('a', 'up').addEpisode(episode)).toThrow('an episode ends after');
    rig.rest(seconds(1));
    const past = { ...episode, until: instant(1_000_000) };
    expect(() => rig.network.link('a', 'up').addEpisode(past)).toThrow('in the future');
  });
});
