import { afterEach, expect, test } from 'vitest';
import { ipv4, ipv6, parseIp, type Address } from '../../core/index.ts';
import { bytes, FRONT, LOCAL, LOCAL_IPV6, LOOPBACK, OTHER_FRONT } from '../../test/driver-bench.ts';
import { needIpv6, needKoffi } from '../../test/e2e/peers.ts';
import { LoopbackPeer } from '../../test/loopback-peer.ts';
import { silent } from './mmsg-world.laws.ts';
import { loadLibc, type Libc } from './libc.ts';
import { SOCK_FILTER } from './libc-layout.ts';
import { MmsgDriver } from './mmsg.ts';
import { siblingMemory } from './siblings.ts';
import type { Sharing } from './sockets.ts';
import { steeringBySource } from './steering.ts';

const libc = loadLibc();
const SOCKET = { ipv6Only: false, receiveBuffer: 262_144, sendBuffer: 65_536 };
const SOURCES = Array.from({ length: 40 }, (_, n) => ipv4(LOOPBACK + n, 0));

if (typeof libc === 'string') test(`no sockets without libc: ${libc}`, needKoffi);
else sharingTests(libc);

function sharingTests(real: Libc): void {
  const drivers: MmsgDriver[] = [];
  const peers: LoopbackPeer[] = [];

  afterEach(() => {
    for (const driver of drivers.splice(0)) {
      driver.closeListener(FRONT);
      driver.close();
    }
    for (const peer of peers.splice(0)) peer.close();
  });

  /** Listeners of three drivers at one address, and what each hears of whom. */
  const group = (sharing: Sharing, at: Address): { at: Address; heard: Address[][] } => {
    let address = at;
    const heard = [0, 1, 2].map(() => {
      const sources: Address[] = [];
      const driver = new MmsgDriver(real, sharing);
      drivers.push(driver);
      driver.attach({ ...silent, clientDatagram: (_listener, src) => sources.push(src) });
      expect(driver.openListener(FRONT, address, SOCKET)).toBeUndefined();
      address = { ...at, port: driver.portOf(FRONT) ?? 0 };
      return sources;
    });
    return { at: address, heard };
  };
  const ask = (from: Address, to: Address): void => {
    const peer = new LoopbackPeer(from);
    peers.push(peer);
    peer.send(to, bytes(1));
  };
  const listen = (): void => drivers.forEach((driver) => driver.turn(0));

  test('sockets that share an address are each sent some of its flows', () => {
    const { at, heard } = group({ siblings: siblingMemory() }, LOCAL);
    for (const source of SOURCES) ask(source, at);
    listen();
    expect(heard.flat()).toHaveLength(SOURCES.length);
    expect(heard.every(({ length }) => length > 0)).toBe(true);
  });

  for (const [at, name] of [
    [LOCAL, 'an IPv4 listener'],
    [ipv6([0, 0, 0, 0], 0), 'a listener for both families'],
  ] as const) {
    test(`steered by source, ${name} gets all of a source, and the others their part`, (context) => {
      if (at.family === 6) needIpv6(context);
      const shared = group({ siblings: siblingMemory(), steer: { count: 3 } }, at);
      for (const source of SOURCES) {
        for (let port = 0; port < 3; port += 1) ask(source, ipv4(LOOPBACK, shared.at.port));
      }
      listen();
      const found = SOURCES.map(({ a }) =>
        shared.heard.map((sources) => sources.filter((source) => source.a === a).length),
      );
      const expected = SOURCES.map((source) => {
        const place = run(3, packet(source));
        return [0, 1, 2].map((n) => (n === place ? 3 : 0));
      });
      expect(found).toEqual(expected);
      expect(shared.heard.every(({ length }) => length > 0)).toBe(true);
    });
  }

  test('steered by source, an IPv6 client is heard where its address says, from whatever port', (context) => {
    needIpv6(context);
    const shared = group({ siblings: siblingMemory(), steer: { count: 3 } }, LOCAL_IPV6);
    for (let port = 0; port < 12; port += 1) ask(LOCAL_IPV6, shared.at);
    listen();
    const place = run(3, packet(LOCAL_IPV6));
    expect(shared.heard.map(({ length }) => length)).toEqual(
      [0, 1, 2].map((n) => (n === place ? 12 : 0)),
    );
  });

  test('siblings join each other and nobody else, and the last one to leave frees the address', () => {
    const [one, other] = [siblingMemory(), siblingMemory()];
    const { at } = group({ siblings: one }, LOCAL);
    const stranger = new MmsgDriver(real, { siblings: other });
    drivers.push(stranger);
    expect(stranger.openListener(FRONT, at, SOCKET)).toBe('EADDRINUSE');
    for (const driver of drivers) driver.closeListener(FRONT);
    expect(stranger.openListener(FRONT, at, SOCKET)).toBeUndefined();
    expect(drivers[0]?.openListener(FRONT, at, SOCKET)).toBe('EADDRINUSE');
  });

  test('siblings at one address of a port join nobody at another, who would share with anybody', () => {
    const { at } = group({ siblings: siblingMemory() }, LOCAL);
    const elsewhere = { ...at, a: LOOPBACK + 1 };
    const stranger = new MmsgDriver(real, { siblings: siblingMemory() });
    expect(stranger.openListener(FRONT, elsewhere, SOCKET)).toBeUndefined();
    for (const driver of drivers) {
      expect(driver.openListener(OTHER_FRONT, elsewhere, SOCKET)).toBe('EADDRINUSE');
    }
    drivers.push(stranger);
  });
}

test('sources of both families are steered evenly, by every part of an address', () => {
  for (const [text, step] of [
    ['10.0.0.0', 1],
    ['10.0.0.0', 65_536],
    ['2001:db8::', 1],
    ['2001:db8::', 2 ** 24],
  ] as const) {
    const first = parseIp(text, 0) ?? LOCAL;
    for (const word of first.family === 4 ? (['a'] as const) : (['a', 'b', 'c', 'd'] as const)) {
      const found = [0, 0, 0, 0];
      for (let n = 0; n < 256; n += 1) {
        const place = run(4, packet({ ...first, [word]: (first[word] + n * step) | 0 }));
        found[place] = (found[place] ?? 0) + 1;
      }
      for (const count of found) expect(count).toBeGreaterThan(32);
    }
  }
});

/** The header of IP as far as the program reads it. */
function packet({ family, a, b, c, d }: Address): DataView {
  const view = new DataView(new ArrayBuffer(40));
  view.setUint8(0, family << 4);
  if (family === 4) view.setInt32(12, a);
  else [a, b, c, d].forEach((word, n) => view.setInt32(8 + 4 * n, word));
  return view;
}

/** What a processor of classic BPF makes of the program, as <linux/filter.h> says. */
function run(count: number, header: DataView): number {
  const program = steeringBySource(count);
  const code = new DataView(program.bytes.buffer);
  let [a, x] = [0, 0];
  for (let at = 0; at < program.instructions; at += 1) {
    const here = at * SOCK_FILTER.size;
    const k = code.getInt32(here + SOCK_FILTER.constant, true);
    const operation = code.getUint16(here + SOCK_FILTER.code, true);
    if (operation === 0x16) return a;
    if (operation === 0x05) at += k;
    else if (operation === 0x15)
      at += code.getUint8(here + (a === k ? SOCK_FILTER.ifTrue : SOCK_FILTER.ifFalse));
    else if (operation === 0x07) x = a;
    else if (operation === 0x20) a = header.getUint32(k + 0x100000);
    else if (operation === 0x30) a = header.getUint8(k + 0x100000);
    else a = computed(operation, a, operation === 0xac ? x : k) >>> 0;
  }
  return expect.unreachable('a program returns');
}

function computed(operation: number, a: number, operand: number): number {
  if (operation === 0x74) return a >>> operand;
  if (operation === 0x24) return Math.imul(a, operand);
  if (operation === 0x94) return a % operand;
  if (operation === 0xac) return a ^ operand;
  return expect.unreachable('the program uses nothing else');
}
