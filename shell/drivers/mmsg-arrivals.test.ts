import { array, assert, asyncProperty, constantFrom, record } from 'fast-check';
import { expect, test } from 'vitest';
import { ipv4, ipv6, present, type Address } from '../../core/index.ts';
import {
  benchFor,
  bytes,
  FRONT,
  LOCAL,
  LOCAL_IPV6,
  LOOPBACK,
  OTHER_FRONT,
  OTHER_UPSTREAM,
  UPSTREAM,
} from '../../test/driver-bench.ts';
import { needKoffi } from '../../test/e2e/peers.ts';
import { loadLibc, type Libc } from './libc.ts';
import { MessageSpy, silent, worldOf, type MmsgWorld } from './mmsg-world.laws.ts';
import { MmsgDriver } from './mmsg.ts';

const found = loadLibc();

if (typeof found === 'string') test(`no arrivals without libc: ${found}`, needKoffi);
else arrivalTests(found);

function arrivalTests(real: Libc): void {
  /** Messages of each receive that brought any. */
  const received: number[] = [];
  const counting: Libc = {
    ...real,
    recvmmsg: (...call) => {
      const count = real.recvmmsg(...call);
      if (count > 0) received.push(count);
      return count;
    },
  };
  let live: MmsgWorld | undefined;
  const bench = benchFor(async (arrivals) => {
    received.length = 0;
    live = worldOf(counting, arrivals);
    return live;
  });
  const driver = (): MmsgDriver => present(live, 'a test has a world').driver;
  const train = (count: number, size: number, last: number): Uint8Array[] => [
    ...Array.from({ length: count }, (_, n) => bytes(size, n)),
    bytes(last, count),
  ];

  /** A backend that once sent many datagrams at a time is heard in trains from then on. The very first is received alone. */
  const asTrainsFromNowOn = async (): Promise<void> => {
    await bench.turn((ports) => ports.sendToBackend(UPSTREAM, undefined, bytes(3)));
    const [first] = await bench.hear('client', 1);
    const client = present(first, 'a datagram arrived').src;
    const sent = train(19, 3, 3);
    for (const messages of [sent.length - 1, 1]) {
      bench.log.length = 0;
      received.length = 0;
      await bench.turn((ports) =>
        sent.forEach((one) => ports.sendToClient(FRONT, client, undefined, one)),
      );
      await bench.hear('backend', sent.length);
      expect(received).toEqual([messages]);
    }
  };

  test('a train is heard as its datagrams, in order, on a listener and from a backend', async () => {
    const front = bench.listen(FRONT, LOCAL);
    // It is its own client: what it sends as a train arrives as one.
    bench.connect(UPSTREAM, front);
    await asTrainsFromNowOn();
    received.length = 0;
    const shape = record({
      count: constantFrom(1, 2, 3, 5, 63),
      // Few, so that slots meet again what they held before.
      size: constantFrom(3, 5, 1_000),
      last: constantFrom(3, 5, 1_000),
    });
    await assert(
      asyncProperty(array(shape, { minLength: 1, maxLength: 3 }), async (shapes) => {
        const sent = shapes.flatMap(({ count, size, last }) =>
          train(count, size, Math.min(size, last)),
        );
        bench.log.length = 0;
        await bench.turn((ports) =>
          sent.forEach((one) => ports.sendToBackend(UPSTREAM, undefined, one)),
        );
        const heard = await bench.hear('client', sent.length);
        expect(heard.map(({ payload }) => payload)).toEqual(sent);
        const src = heard[0]?.src ?? LOCAL;
        expect(heard.every((one) => one.src === src)).toBe(true);
        await bench.turn((ports) =>
          sent.forEach((one) => ports.sendToClient(FRONT, src, undefined, one)),
        );
        const back = await bench.hear('backend', sent.length);
        expect(back.map(({ payload }) => payload)).toEqual(sent);
        expect(bench.of('client').length + bench.of('backend').length).toBe(2 * sent.length);
      }),
      { numRuns: 30 },
    );
    expect(Math.max(...received)).toBeLessThanOrEqual(6);
  });

  for (const how of ['as one', 'datagram by datagram']) {
    test(`a train that goes on ${how} leaves in one piece, from where it lies`, async () => {
      const spy = new MessageSpy();
      const pieces: number[] = [];
      const forwarding = new MmsgDriver({
        ...spy.watching(real),
        sendmmsg: (fd, headers, count) => {
          pieces.push(spy.vectorsAt(headers), spy.trainsAt(headers, count)[0] ?? 0);
          return real.sendmmsg(fd, headers, count);
        },
      });
      const backend = bench.world.peer(LOCAL);
      const heard: string[] = [];
      forwarding.attach({
        ...silent,
        clientTrain: (_listener, _src, _local, payload, unit) => {
          heard.push(`${payload.length} / ${unit}`);
          if (how === 'as one') forwarding.trainToBackend(UPSTREAM, payload, unit);
          return how === 'as one';
        },
        clientDatagram: (_listener, _src, _local, payload) => {
          heard.push(`${payload.length}`);
          forwarding.sendToBackend(UPSTREAM, undefined, payload);
        },
        endTurn: () => forwarding.flush(() => expect.unreachable('nothing fails')),
      });
      const socket = { ipv6Only: false, receiveBuffer: 65_536, sendBuffer: 65_536 };
      expect(forwarding.openListener(FRONT, LOCAL, socket)).toBeUndefined();
      expect(forwarding.openUpstream(UPSTREAM, backend.address, undefined)).toBeUndefined();
      bench.connect(OTHER_UPSTREAM, { ...LOCAL, port: forwarding.portOf(FRONT) ?? 0 });
      const sent = train(20, 300, 7);
      for (const round of [1, 2]) {
        pieces.length = 0;
        heard.length = 0;
        await bench.turn((ports) =>
          sent.forEach((one) => ports.sendToBackend(OTHER_UPSTREAM, undefined, one)),
        );
        forwarding.turn(1_000);
        expect(pieces, `round ${round}`).toEqual([1, 21]);
        const each = how === 'as one' ? [] : sent.map((one) => `${one.length}`);
        expect(heard).toEqual(['6007 / 300', ...each]);
        for (const one of sent) expect((await bench.receive(backend)).payload).toEqual(one);
      }
      forwarding.closeListener(FRONT);
      forwarding.closeUpstream(UPSTREAM);
      forwarding.close();
    });
  }

  for (const [family, anywhere, asked] of [
    ['IPv4', ipv4(0, 0), ipv4(LOOPBACK + 1, 0)],
    ['IPv6', ipv6([0, 0, 0, 0], 0), LOCAL_IPV6],
  ] as const) {
    test(`counts to the datagram what found no room, beside the ${family} address asked and a train`, async (context) => {
      if (family === 'IPv6') bench.world.need(context, 'IPv6');
      const socket = { ipv6Only: false, receiveBuffer: 65_536, sendBuffer: 65_536 };
      expect(bench.call((ports) => ports.openListener(FRONT, anywhere, socket))).toBeUndefined();
      const front: Address = { ...asked, port: bench.world.portOf(FRONT) ?? 0 };
      const client = bench.world.peer(family === 'IPv4' ? LOCAL : LOCAL_IPV6);
      for (let n = 0; n < 300; n += 1) client.send(front, bytes(1_000, n));
      await bench.hear('client', 1);
      await bench.world.settle();
      const heard = bench.of('client').length;
      expect(heard).toBeLessThan(300);
      bench.connect(UPSTREAM, front);
      const sent = train(5, 40, 3);
      received.length = 0;
      await bench.turn((ports) =>
        sent.forEach((one) => ports.sendToBackend(UPSTREAM, undefined, one)),
      );
      const last = (await bench.hear('client', heard + sent.length)).slice(heard);
      expect(last.map(({ payload, local }) => ({ payload, local }))).toEqual(
        sent.map((payload) => ({ payload, local: front })),
      );
      expect(received).toEqual([1]);
      const other = bench.listen(OTHER_FRONT, LOCAL);
      bench.world.peer(LOCAL).send(other, bytes(1));
      await bench.hear('client', heard + sent.length + 1);
      const drops = [
        [FRONT, 300 - heard],
        [OTHER_FRONT, 0],
      ];
      expect(driver().figures.kernelDrops).toEqual(drops);
    });
  }

  test('after many datagrams of few messages a turn ends, and the next goes on', async () => {
    const front = bench.listen(FRONT, LOCAL);
    const other = bench.listen(OTHER_FRONT, LOCAL);
    bench.connect(UPSTREAM, front);
    bench.connect(OTHER_UPSTREAM, other);
    await bench.turn((ports) => {
      for (let n = 0; n < 17 * 64; n += 1) ports.sendToBackend(UPSTREAM, undefined, bytes(5));
      ports.sendToBackend(OTHER_UPSTREAM, undefined, bytes(5));
    });
    await bench.hear('client', 17 * 64 + 1);
    const turns = bench.log
      .map(({ kind }) => kind)
      .join(' ')
      .split('endTurn');
    expect(turns.map((turn) => turn.split('client').length - 1)).toEqual([17 * 64, 1, 0]);
  });
}
