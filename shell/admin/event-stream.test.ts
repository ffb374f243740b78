/** Server-sent events: one block for each, a bound on readers, and an end to a reader that does not keep up. */
import { once } from 'node:events';
import { createServer, get, type IncomingMessage } from 'node:http';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { instant, present } from '../../core/index.ts';
import type { ProxyEvent } from '../event-hub.ts';
import { EventStream } from './event-stream.ts';

let events: EventStream;
const told = { cutOff: 0 };
let opened: boolean[];
let responses: IncomingMessage[];
const server = createServer((_, response) => {
  opened.push(events.open(response));
  if (opened.at(-1) === false) response.end('full');
});

beforeEach(async () => {
  told.cutOff = 0;
  opened = [];
  responses = [];
  events = new EventStream(
    () => instant(0),
    () => void (told.cutOff += 1),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});

afterEach(async () => {
  events.close();
  for (const response of responses) response.destroy();
  server.close();
  server.closeAllConnections();
  await once(server, 'close');
});

test('a reader that does not read is cut off, and costs no more; one that reads misses nothing', async () => {
  const [slow, quick] = [await reader(), await reader()];
  slow.pause();
  let heard = '';
  quick.setEncoding('utf8').on('data', (piece: string) => (heard += piece));
  let count = 0;
  const most = process.memoryUsage().rss + 200_000_000;
  while (told.cutOff === 0) {
    for (let n = 0; n < 100; n += 1) {
      events.tell(event(count));
      count += 1;
    }
    // The one that reads has its turn.
    const last = `"flows_left":${count - 1}}`;
    while (!heard.includes(last)) await once(quick, 'data');
    heard = heard.slice(-1_000);
    expect(process.memoryUsage().rss).toBeLessThan(most);
  }
  expect(told.cutOff).toBe(1);
  slow.resume();
  await once(slow, 'error');
  events.tell(event(-1));
  while (!heard.includes('"flows_left":-1}')) await once(quick, 'data');
});

test('an event is one block with a number, a name and one line of data', async () => {
  const quick = await reader();
  let heard = '';
  quick.setEncoding('utf8').on('data', (piece: string) => (heard += piece));
  events.tell(event(3));
  events.tell({ ...event(4), cluster: 'a\nb\n\ndata: x' });
  while (!heard.includes('"flows_left":4')) await once(quick, 'data');
  const blocks = heard.split('\n\n').filter((block) => block.startsWith('id: '));
  expect(blocks).toEqual([
    'id: 1\nevent: BackendDraining\ndata: {"kind":"BackendDraining","cluster":"c","address":"10.0.0.1:53","flows_left":3}',
    'id: 2\nevent: BackendDraining\ndata: {"kind":"BackendDraining","cluster":"a\\nb\\n\\ndata: x","address":"10.0.0.1:53","flows_left":4}',
  ]);
});

test('a place that a reader leaves is free again', async () => {
  const readers: IncomingMessage[] = [];
  for (let n = 0; n < 8; n += 1) readers.push(await reader());
  await reader();
  expect(opened).toEqual([...Array.from({ length: 8 }, () => true), false]);
  present(readers[0], 'there are eight').destroy();
  // Whether its end or the next request reaches the server first, nobody can say.
  do await reader();
  while (opened.at(-1) === false);
});

async function reader(): Promise<IncomingMessage> {
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const request = get({ host: '127.0.0.1', port, agent: false });
  const [response]: IncomingMessage[] = await once(request, 'response');
  const known = present(response, 'there is a response');
  responses.push(known);
  known.on('error', () => undefined);
  return known;
}

function event(flowsLeft: number): Extract<ProxyEvent, { kind: 'BackendDraining' }> {
  const address = { family: 4, a: 0x0a000001, b: 0, c: 0, d: 0, port: 53, scope: 0 } as const;
  return { kind: 'BackendDraining', cluster: 'c', address, flowsLeft };
}
