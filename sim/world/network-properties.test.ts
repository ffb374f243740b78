/** Random faults, episodes, cuts and traffic: whatever they are, every packet has exactly one end, and none goes astray. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { instant, microseconds } from '../../core/time.ts';
import { a, b, c, datagramOf, HOME, NAT_IP, NetworkRig, p, q } from '../../test/network-rig.ts';
import type { Episode, LinkFaults, Ratio, Span } from './faults.ts';
import { FAULTLESS } from './faults.ts';
import type { Latency } from './latency.ts';
import type { LinkPlace } from './network.ts';
import type { Packet } from './packet.ts';
import { destinationOf } from './packet.ts';

const HOSTS = ['a', 'b', 'c', 'p', 'q'] as const;
const PORTS = { a, b, c, p, q };
const FOR_A_SECOND = 1_000_000;

const anyRatio: fc.Arbitrary<Ratio> = fc
  .tuple(fc.nat(3), fc.integer({ min: 3, max: 12 }))
  .map(([numerator, denominator]) => ({ numerator, denominator }));

const anySpan: fc.Arbitrary<Span> = fc
  .tuple(fc.nat(20_000), fc.nat(20_000))
  .map(([low, more]) => ({ low: microseconds(low), high: microseconds(low + more) }));

const anyLatency: fc.Arbitrary<Latency> = fc.oneof(
  anySpan.map(({ low }): Latency => ({ kind: 'constant', time: low })),
  anySpan.map((span): Latency => ({ kind: 'uniform', ...span })),
  fc
    .tuple(anySpan, fc.nat(32))
    .map(([{ low }, spread]): Latency => ({ kind: 'log-normal', median: low, spread })),
);

const anyFaults: fc.Arbitrary<LinkFaults> = fc.record({
  latency: anyLatency,
  loss: off(
    fc.record({ toBad: anyRatio, toGood: anyRatio, lossGood: anyRatio, lossBad: anyRatio }),
  ),
  duplication: off(fc.record({ ratio: anyRatio, by: anySpan })),
  reordering: off(fc.record({ ratio: anyRatio, by: anySpan })),
  corruption: off(
    fc.record({
      ratio: anyRatio,
      caught: anyRatio,
      ways: fc.constantFrom(['flip'], ['cut', 'extend']),
    }),
  ),
  mtu: off(fc.record({ bytes: fc.integer({ min: 30, max: 60 }), icmp: fc.boolean() })),
  rate: off(
    fc.record({
      bytesPerSecond: fc.integer({ min: 1_000, max: 1_000_000 }),
      queueBytes: fc.integer({ min: 30, max: 2_000 }),
    }),
  ),
  partitioned: rarely(),
  held: rarely(),
});

const anyEpisode: fc.Arbitrary<Episode> = fc.record({
  from: fc.nat(FOR_A_SECOND).map(instant),
  until: fc.integer({ min: FOR_A_SECOND + 1, max: 2 * FOR_A_SECOND }).map(instant),
  faults: fc.oneof(anyFaults, fc.constant({ held: true }), fc.constant({ partitioned: true })),
});

type Step =
  | { do: 'send' | 'send raw'; from: number; to: number; port: number; bytes: number }
  | { do: 'rest'; time: number }
  | { do: 'episode'; host: number; place: LinkPlace; episode: Episode }
  | { do: 'faults'; host: number; place: LinkPlace; faults: LinkFaults }
  | { do: 'cut' | 'mend'; from: number; to: number }
  | { do: 'stop' | 'start' | 'rebind'; host: number }
  | { do: 'heal' | 'reset' };

const aHost = fc.nat(HOSTS.length - 1);
const aPlace = fc.constantFrom<LinkPlace>('up', 'down');

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constantFrom('send', 'send raw'),
      from: aHost,
      to: fc.nat(HOSTS.length),
      port: fc.nat(2),
      bytes: fc.nat(40),
    }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('rest'), time: fc.nat(30_000) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('episode'),
      host: aHost,
      place: aPlace,
      episode: anyEpisode,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('faults'),
      host: aHost,
      place: aPlace,
      faults: anyFaults,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constantFrom('cut', 'mend'), from: aHost, to: aHost }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constantFrom('stop', 'start', 'rebind'), host: aHost }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('heal', 'reset') }) },
);

test('every packet that is sent or copied is delivered or lost exactly once, at every step', () => {
  const causes = new Set<string>();
  fc.assert(
    fc.property(fc.array(anyStep, { maxLength: 120, size: 'max' }), fc.nat(), (steps, seed) => {
      const rig = run(steps, seed);
      const open = new Map<number, number>();
      for (const fate of rig.fates) {
        const { serial } = fate.packet;
        const count = open.get(serial) ?? 0;
        if (fate.kind === 'sent') expect(count).toBe(0);
        if (fate.kind === 'delivered' || fate.kind === 'lost') {
          expect(count).toBeGreaterThan(0);
          open.set(serial, count - 1);
        }
        if (fate.kind === 'sent' || fate.kind === 'duplicated') open.set(serial, count + 1);
        if (fate.kind === 'lost') causes.add(fate.cause);
      }
      expect([...open.values()].every((count) => count === 0)).toBe(true);
      for (const { kind, packet } of rig.fates) {
        if (kind !== 'delivered' || packet.kind !== 'datagram') continue;
        expect(isWhereItWasSent(packet)).toBe(true);
      }
    }),
    { seed: 20_261_130, numRuns: 300 },
  );
  expect(causes).toEqual(
    new Set([
      'partition',
      'too-big',
      'loss',
      'checksum',
      'queue-full',
      'no-host',
      'no-port',
      'no-mapping',
      'nat-full',
    ]),
  );
});

test('one seed tells one story, whatever it is', () => {
  fc.assert(
    fc.property(fc.array(anyStep, { maxLength: 120, size: 'max' }), fc.nat(), (steps, seed) => {
      expect(run(steps, seed).fates).toEqual(run(steps, seed).fates);
    }),
    { seed: 20_261_130, numRuns: 50 },
  );
});

test('where nothing reorders or copies, each pair of hosts sees its datagrams in their order', () => {
  const calm = anyFaults.map((faults) => ({
    ...faults,
    duplication: undefined,
    reordering: undefined,
  }));
  const scene = fc.record({
    up: calm,
    down: calm,
    later: calm,
    hold: fc.tuple(fc.nat(50_000), fc.integer({ min: 1, max: 50_000 })),
    gaps: fc.array(fc.nat(3_000), { maxLength: 80, size: 'max' }),
  });
  let heard = 0;
  fc.assert(
    fc.property(scene, fc.nat(), ({ up, down, later, hold: [from, length], gaps }, seed) => {
      const rig = new NetworkRig({ seed });
      rig.listen(b(53));
      rig.network.link('a', 'up').setFaults({ ...up, corruption: undefined });
      rig.network.link('b', 'down').setFaults({ ...down, corruption: undefined });
      const held = { from: instant(from), until: instant(from + length), faults: { held: true } };
      rig.network.link('a', 'up').addEpisode(held);
      for (const [index, gap] of gaps.entries()) {
        if (index === gaps.length >> 1) {
          rig.network.link('b', 'down').setFaults({ ...later, corruption: undefined });
        }
        rig.send(a(1), b(53), String.fromCharCode(index));
        rig.rest(gap);
      }
      rig.network.link('a', 'up').setFaults(FAULTLESS);
      rig.network.link('b', 'down').setFaults(FAULTLESS);
      rig.finish();
      const order = rig.heard.map(({ payload }) => payload[0]!);
      expect(order).toEqual(order.toSorted((one, other) => one - other));
      heard += order.length;
    }),
    { seed: 20_261_130, numRuns: 300 },
  );
  expect(heard).toBeGreaterThan(2_000);
});

function run(steps: readonly Step[], seed: number): StepsRig {
  const rig = new StepsRig({ seed, nat: { ...HOME, ports: { first: 40_000, count: 4 } } });
  for (const port of [1, 2]) {
    rig.listen(b(port));
    rig.listen(p(port), true);
    rig.listen(a(port));
  }
  // Answers may answer one another for ever.
  let answers = 50;
  rig.onDelivery = ({ src, dst }) => {
    if (dst.port === 2 && answers-- > 0) rig.send(dst, src, 'answer');
  };
  for (const step of steps) rig.take(step);
  rig.network.heal();
  for (const host of HOSTS) {
    for (const place of ['up', 'down'] as const) rig.network.link(host, place).setFaults(FAULTLESS);
  }
  rig.finish();
  return rig;
}

class StepsRig extends NetworkRig {
  take(step: Step): void {
    switch (step.do) {
      case 'send':
      case 'send raw':
        return this.#send(step);
      case 'rest':
        return this.rest(step.time);
      case 'episode':
      case 'faults':
        return this.#changeFaults(step);
      case 'cut':
      case 'mend':
        return this.network[step.do](HOSTS[step.from]!, HOSTS[step.to]!);
      case 'stop':
      case 'start':
        return this.network.setRunning(HOSTS[step.host]!, step.do === 'start');
      case 'rebind':
        return this.nat.rebind(PORTS[HOSTS[step.host]!](1));
      default:
        return step.do === 'heal' ? this.network.heal() : this.nat.reset();
    }
  }

  #changeFaults(step: Extract<Step, { place: LinkPlace }>): void {
    const link = this.network.link(HOSTS[step.host]!, step.place);
    if (step.do === 'faults') return link.setFaults(step.faults);
    if (step.episode.until > this.clock.now()) link.addEpisode(step.episode);
  }

  #send({ do: how, from, to, port, bytes }: Extract<Step, { to: number; port: number }>): void {
    const name = HOSTS[from]!;
    const dst = to < HOSTS.length ? PORTS[HOSTS[to]!](port) : { ...NAT_IP, port: 40_000 + port };
    const text = 'x'.repeat(bytes);
    if (how === 'send') this.send(PORTS[name](1 + (bytes % 6)), dst, text);
    else this.network.sendRaw(name, datagramOf(b(1 + (bytes % 6)), dst, text));
  }
}

/** Whether the receiver is whom the sender meant: the address it wrote, or a host behind the NAT it wrote. */
function isWhereItWasSent(packet: Packet): boolean {
  const { a: meant } = packet.sent.dst;
  const { a: found } = destinationOf(packet);
  return found === meant || (meant === NAT_IP.a && (found === p(0).a || found === q(0).a));
}

function off<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.option(arbitrary, { nil: undefined, freq: 2 });
}

function rarely(): fc.Arbitrary<boolean> {
  return fc.nat(9).map((drawn) => drawn === 5);
}
