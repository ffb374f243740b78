/** What goes on in the turn in which it arrived leaves from where it lies: here every datagram of clients does. */
import { constants } from 'node:os';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { socketId, type Address, type SendFailed, type SocketId } from '../../core/index.ts';
import { sendAgain } from '../../core/ports-room.laws.ts';
import { bytes, FRONT, LOCAL, OTHER_UPSTREAM, UPSTREAM } from '../../test/driver-bench.ts';
import { needKoffi } from '../../test/e2e/peers.ts';
import { loadLibc, type Libc } from './libc.ts';
import { MessageSpy, silent } from './mmsg-world.laws.ts';
import { MmsgDriver } from './mmsg.ts';

const found = loadLibc();
const SOCKET = { ipv6Only: false, receiveBuffer: 1_048_576, sendBuffer: 1_048_576 };
const OUTLET = socketId(9, FRONT);

if (typeof found === 'string') test(`nothing is lent without libc: ${found}`, needKoffi);
else lentTests(found);

function lentTests(real: Libc): void {
  const { EINTR, EAGAIN, EPERM, EINVAL, ECONNREFUSED, EMSGSIZE } = constants.errno;
  /** Calls that send, and what the next ones return instead, unless zero; undefined: what the kernel says. */
  const calls: (number[] | 'send')[] = [];
  const answers: (number | undefined)[] = [];
  /** Most messages of each receive of an upstream socket. */
  const asked: number[] = [];
  const heard: { socket: SocketId; payload: Uint8Array }[] = [];
  const failures: SendFailed[] = [];
  /** What the next plain receives return instead; and the sockets that were told of as refused. */
  const receipts: number[] = [];
  const refused: SocketId[] = [];
  /** Which upstream socket the datagrams of a client go to, and the echo that comes back from each. */
  let route: (src: Address, payload: Uint8Array) => void;
  let driver: MmsgDriver;
  let outlet: MmsgDriver;
  let echo: MmsgDriver;

  beforeEach(() => {
    for (const list of [calls, answers, asked, heard, failures, receipts, refused]) list.length = 0;
    const spy = new MessageSpy();
    const answered = (call: () => number): number => answers.shift() ?? call();
    driver = new MmsgDriver({
      ...spy.watching(real),
      send: (...call) => {
        calls.push('send');
        return answered(() => real.send(...call));
      },
      sendmmsg: (fd, headers, count) => {
        calls.push(spy.trainsAt(headers, count));
        return answered(() => real.sendmmsg(fd, headers, count));
      },
      recvmmsg: (fd, headers, count) => {
        asked.push(count);
        return real.recvmmsg(fd, headers, count);
      },
      recv: (...call) => {
        asked.push(1);
        return receipts.shift() ?? real.recv(...call);
      },
    });
    route = (_src, payload) => driver.sendToBackend(UPSTREAM, undefined, payload);
    driver.attach({
      ...silent,
      clientDatagram: (_listener, src, _local, payload) => route(src, payload),
      backendDatagram: (socket, payload) => {
        heard.push({ socket, payload: Uint8Array.from(payload) });
      },
      refused: (socket) => refused.push(socket),
      endTurn: () => driver.flush((failure) => failures.push(failure)),
    });
    // A program that sends trains, and one that answers in trains.
    outlet = new MmsgDriver(real);
    outlet.attach(silent);
    echo = new MmsgDriver(real);
    echo.attach({
      ...silent,
      clientDatagram: (listener, src, _local, payload) => {
        echo.sendToClient(listener, src, undefined, payload);
      },
      endTurn: () => echo.flush(() => expect.unreachable('nothing fails')),
    });
    for (const one of [driver, echo]) {
      expect(one.openListener(FRONT, LOCAL, SOCKET)).toBeUndefined();
    }
    connect(driver, UPSTREAM, echo);
    connect(outlet, OUTLET, driver);
  });

  afterEach(() => {
    for (const one of [driver, echo]) one.closeListener(FRONT);
    for (const socket of [UPSTREAM, OTHER_UPSTREAM]) driver.closeUpstream(socket);
    outlet.closeUpstream(OUTLET);
    for (const one of [driver, echo, outlet]) one.close();
  });

  const connect = (from: MmsgDriver, socket: SocketId, to: MmsgDriver): void => {
    const address = { ...LOCAL, port: to.portOf(FRONT) ?? 0 };
    expect(from.openUpstream(socket, address, undefined)).toBeUndefined();
  };
  /** These arrive, and go on within the turn. */
  const arrive = (...payloads: Uint8Array[]): void => {
    for (const payload of payloads) outlet.sendToBackend(OUTLET, undefined, payload);
    outlet.flush(() => expect.unreachable('nothing fails'));
    driver.turn(1_000);
  };
  /** What came back from the echo since the last time, socket by socket. */
  const returned = (): Uint8Array[] => {
    for (let turn = 0; turn < 3; turn += 1) {
      echo.turn(0);
      driver.turn(0);
    }
    const all = heard.splice(0).toSorted((one, other) => one.socket - other.socket);
    return all.map(({ payload }) => payload);
  };
  const train = (count: number, size: number): Uint8Array[] =>
    Array.from({ length: count }, (_, n) => bytes(size, n));
  const told = (): unknown[] =>
    failures.map((one) => [one.cause, 'payload' in one ? Uint8Array.from(one.payload) : one.errno]);

  test('the one datagram of a flow in a turn is sent by the cheapest call', () => {
    arrive(bytes(40, 1));
    expect(calls).toEqual(['send']);
    expect(returned()).toEqual([bytes(40, 1)]);
    arrive(bytes(0));
    expect(returned()).toEqual([bytes(0)]);
    expect(failures).toEqual([]);
  });

  test('and comes back when that finds no room, or meets a refusal; any other error is told', () => {
    for (const [errno, outcome] of [
      [EAGAIN, ['blocked', bytes(5)]],
      [ECONNREFUSED, ['refused', bytes(5)]],
      [EPERM, ['error', 'EPERM']],
    ] as const) {
      answers.push(-EINTR, -errno);
      failures.length = 0;
      arrive(bytes(5));
      expect(told()).toEqual([outcome]);
      expect(answers).toEqual([]);
    }
    expect(returned()).toEqual([]);
    arrive(bytes(6));
    expect(returned()).toEqual([bytes(6)]);
  });

  test('a router that wants shorter datagrams costs neither the next one nor the backend its name', () => {
    answers.push(-EMSGSIZE);
    arrive(bytes(5));
    receipts.push(-EMSGSIZE);
    expect(returned()).toEqual([bytes(5)]);
    expect([failures, refused, receipts]).toEqual([[], [], []]);
    answers.push(-EMSGSIZE, -EMSGSIZE);
    arrive(bytes(6));
    expect(told()).toEqual([['error', 'EMSGSIZE']]);
    route = (_src, payload) => driver.sendToBackend(UPSTREAM, bytes(28), payload);
    answers.push(-EMSGSIZE);
    arrive(bytes(8));
    expect(returned()).toEqual([Uint8Array.from([...bytes(28), ...bytes(8)])]);
    answers.push(-EMSGSIZE, -EMSGSIZE);
    arrive(bytes(9));
    expect(told()).toEqual([
      ['error', 'EMSGSIZE'],
      ['error', 'EMSGSIZE'],
    ]);
    route = (_src, payload) => driver.sendToBackend(UPSTREAM, undefined, payload);
    receipts.push(-ECONNREFUSED);
    arrive(bytes(7));
    expect(returned()).toEqual([bytes(7)]);
    expect(refused).toEqual([UPSTREAM]);
  });

  test('a datagram with a header is no plain one', () => {
    route = (_src, payload) => driver.sendToBackend(UPSTREAM, bytes(28, 3), payload);
    arrive(bytes(5));
    expect(calls).toEqual([[1]]);
    expect(returned()).toEqual([Uint8Array.from([...bytes(28, 3), ...bytes(5)])]);
    answers.push(-EAGAIN);
    arrive(bytes(6));
    expect(failures).toMatchObject([{ cause: 'blocked', header: bytes(28, 3), payload: bytes(6) }]);
  });

  test('trains go on as they came, up to what a train may be, to whom each datagram is for', () => {
    connect(driver, OTHER_UPSTREAM, echo);
    let n = 0;
    route = (_src, payload) => {
      driver.sendToBackend(n < 13 ? UPSTREAM : OTHER_UPSTREAM, undefined, payload);
      n += 1;
    };
    const sent = [...train(20, 30), bytes(7)];
    arrive(...sent);
    expect(calls).toEqual([[13], [8]]);
    expect(returned()).toEqual(sent);
  });

  test('a reply is not taken along with those of another client that lie before it', () => {
    const other = new MmsgDriver(real);
    const got: number[][] = [[], []];
    for (const [at, one] of [outlet, other].entries()) {
      one.attach({ ...silent, backendDatagram: (_s, { length }) => got[at]?.push(length) });
    }
    connect(other, OUTLET, driver);
    const sources: Address[] = [];
    route = (src) => sources.push(src);
    arrive(bytes(1));
    other.sendToBackend(OUTLET, undefined, bytes(2));
    other.flush(() => expect.unreachable('nothing fails'));
    driver.turn(1_000);
    let n = 0;
    route = (_src, payload) => {
      driver.sendToClient(FRONT, sources[n < 2 ? 0 : 1] ?? LOCAL, undefined, payload);
      n += 1;
    };
    arrive(...train(4, 9), bytes(3));
    // The first answer of a flow is received alone.
    for (const one of [outlet, other]) for (const _ of [1, 2]) one.turn(1_000);
    expect(got).toEqual([
      [9, 9],
      [9, 9, 3],
    ]);
    other.closeUpstream(OUTLET);
    other.close();
  });

  test('a train that a path refuses goes datagram by datagram, from where it lies', () => {
    answers.push(-EINVAL);
    const sent = [...train(40, 50), bytes(20)];
    arrive(...sent);
    expect(calls).toEqual([[41], Array.from({ length: 41 }, () => 1)]);
    expect(returned()).toEqual(sent);
    arrive(...sent);
    expect(calls).toHaveLength(3);
    expect(driver.figures).toMatchObject({ trains: 0, trainsRefused: 1 });
    arrive(...train(3, 49));
    expect(calls.at(-1)).toEqual([3]);
    expect(failures).toEqual([]);
  });

  test('what finds no room in the midst of a train comes back from there on, its very bytes', () => {
    answers.push(-EINVAL, 2, -EAGAIN);
    route = (src, payload) => driver.sendToClient(FRONT, src, undefined, payload);
    const sent = [...train(5, 50), bytes(20), bytes(60)];
    arrive(...sent);
    expect(told()).toEqual(sent.slice(2).map((payload) => ['blocked', payload]));
    failures.splice(0).forEach((one) => sendAgain(driver, one));
    driver.flush((failure) => failures.push(failure));
    expect(failures).toEqual([]);
  });

  test('a train that is refused, or finds no room, comes back as its datagrams', () => {
    for (const [errno, first] of [
      [ECONNREFUSED, 'refused'],
      [EAGAIN, 'blocked'],
    ] as const) {
      answers.push(-errno);
      failures.length = 0;
      const sent = [...train(5, 50), bytes(20)];
      arrive(...sent);
      expect(told()).toEqual(sent.map((payload, n) => [n === 0 ? first : 'blocked', payload]));
    }
  });

  test('a flow that was heard once, long ago or never, is asked for one message, and for all when there are more', () => {
    const sent = [bytes(1), bytes(2), bytes(3), bytes(4)];
    for (const [payloads, expected] of [
      [[bytes(1)], [1]],
      [[bytes(1)], [1]],
      [sent, [1, 64]],
      [sent, [64]],
    ] as const) {
      arrive(...payloads);
      asked.length = 0;
      expect(returned()).toEqual(payloads);
      expect(asked).toEqual(expected);
      // Many turns.
      for (let turn = 0; turn < 3; turn += 1) driver.turn(0);
    }
  });
}
