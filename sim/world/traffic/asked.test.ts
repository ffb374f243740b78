import { expect, test } from 'vitest';
import type { Address } from '../../../core/address.ts';
import { listenerId, socketId, type SocketId } from '../../../core/brand.ts';
import { instant } from '../../../core/time.ts';
import { Observer } from '../../properties.ts';
import {
  backendAddress,
  clientAddress,
  configOf,
  proxyAddress,
  proxyOf,
  worldOf,
} from '../builders.ts';
import { FactHub } from '../facts.ts';
import { writeMessage, type Message } from '../message.ts';
import { Verdicts } from '../verdicts.ts';
import { followQuestions, type Asked } from './asked.ts';

const NOW = instant(0);
const FRONT = { ...proxyAddress(0), port: 53 };
const PORT = { ...proxyAddress(0), port: 40_000 };

interface Book {
  readonly asked: Asked;
  readonly hub: FactHub;
}

test('an answer is a stray once its port is another flow’s, although that has sent nothing yet', () => {
  const book = bookOf();
  const [early, late] = [socketId(1, listenerId(0)), socketId(2, listenerId(0))];
  const [first, second] = [question(3), question(4)];
  ask(book, early, first);
  deliver(book, backendAddress(0), PORT, { ...first, kind: 'answer' });
  expect(book.asked.isStray(first)).toBe(false);
  book.hub.tell('Bound', { process: 1, plane: 0, socket: late, local: PORT }, NOW);
  deliver(book, backendAddress(0), PORT, { ...first, kind: 'answer' });
  expect(book.asked.isStray(first)).toBe(true);
  ask(book, late, second);
  deliver(book, backendAddress(0), PORT, { ...second, kind: 'answer' });
  expect(book.asked.isStray(second)).toBe(false);
});

function bookOf(): Book {
  const proxies = [proxyOf(configOf({}))];
  const spec = worldOf({ clients: 1, backends: 1 }, { proxies });
  const { asked, hearings } = followQuestions(new Verdicts(new Observer()), spec, {});
  const hub = new FactHub();
  hub.join(hearings);
  return { asked, hub };
}

function question(client: number): Message & { readonly kind: 'request' } {
  return { kind: 'request', client, serial: 1, backend: 0, copy: 0 };
}

/** A client asks, and the proxy is to send it on from `socket`. */
function ask(book: Book, socket: SocketId, message: Message): void {
  book.hub.tell('Bound', { process: 1, plane: 0, socket, local: PORT }, NOW);
  deliver(book, clientAddress(0, 4_000 + message.client), FRONT, message);
  const payload = writeMessage(message, 40);
  const output = { kind: 'SendToBackend', socket, header: undefined, payload } as const;
  book.hub.tell('DataOutput', { process: 1, plane: 0, output }, NOW);
}

function deliver(book: Book, src: Address, dst: Address, message: Message): void {
  const datagram = { src, dst, payload: writeMessage(message, 40) };
  const packet = {
    kind: 'datagram',
    serial: 1,
    copy: false,
    raw: false,
    sent: datagram,
    datagram,
    about: 0,
    mtu: 0,
  } as const;
  book.hub.tell('Packet', { kind: 'delivered', packet }, NOW);
}
