/** Requests and replies are counted for what they are: nothing that was asked for is cut off. */
import { expect, test } from 'vitest';
import { startBackend } from './backend.ts';
import { openClient } from './client.ts';
import { freePort } from './ports.ts';
import { startProxy, toml } from './proxy.ts';

const REPLY_AFTER_MILLISECONDS = 100;
const APART_MILLISECONDS = 30;

test('A and AAAA from one socket, answered out of order 30 ms apart, both arrive with preset = "dns"', async () => {
  const [backend, port] = [await startBackend('dns', { answers: 0 }), await freePort()];
  const proxy = await startProxy(
    toml({
      listen: `127.0.0.1:${port}`,
      backends: [backend],
      udp: { preset: 'dns' },
    }),
  );
  const client = await openClient({ to: port });
  await client.send('A?');
  await client.send('AAAA?');
  const [first, second] = [await backend.arrivals.next(), await backend.arrivals.next()];
  expect([String(first.payload), String(second.payload)]).toEqual(['A?', 'AAAA?']);
  expect(first.from.port).toBe(second.from.port);
  second.reply('AAAA!');
  setTimeout(() => first.reply('A!'), APART_MILLISECONDS);
  expect(String(await client.replies.next())).toBe('AAAA!');
  expect(String(await client.replies.next())).toBe('A!');
  // Every answer came, so the flow is over: the next question leaves from a new socket.
  await client.send('MX?');
  expect((await backend.arrivals.next()).from.port).not.toBe(first.from.port);
  expect((await proxy.softStop()).code).toBe(0);
});

test('without responses_per_request the first of two answers ends the flow, as the seeds say', async () => {
  const [backend, port] = [await startBackend('dns', { answers: 0 }), await freePort()];
  await startProxy(
    toml({ listen: `127.0.0.1:${port}`, backends: [backend], udp: { responses: 1 } }),
  );
  const client = await openClient({ to: port });
  await client.send('A?');
  await client.send('AAAA?');
  const [first, second] = [await backend.arrivals.next(), await backend.arrivals.next()];
  second.reply('AAAA!');
  expect(String(await client.replies.next())).toBe('AAAA!');
  first.reply('A!');
  // What comes after it on the same socket proves that the late answer did not come.
  await client.send('MX?');
  (await backend.arrivals.next()).reply('MX!');
  expect(String(await client.replies.next())).toBe('MX!');
});

test('requests = 1 with a reply after 100 ms arrives with requests_linger', async () => {
  const [backend, port] = [await startBackend('slow', { answers: 0 }), await freePort()];
  const proxy = await startProxy(
    toml({
      listen: `127.0.0.1:${port}`,
      backends: [backend],
      udp: { requests: 1, responses: 1, requests_linger: true },
    }),
  );
  const client = await openClient({ to: port });
  const sockets = new Set<number>();
  for (const word of ['one', 'two', 'three']) {
    await client.send(word);
    const arrival = await backend.arrivals.next();
    sockets.add(arrival.from.port);
    setTimeout(() => arrival.reply(`${word}!`), REPLY_AFTER_MILLISECONDS);
  }
  const replies = [1, 2, 3].map(async () => String(await client.replies.next()));
  expect((await Promise.all(replies)).sort()).toEqual(['one!', 'three!', 'two!']);
  expect(sockets.size, 'each request has a flow of its own').toBe(3);
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 0 });
});

test('an empty datagram keeps a live flow, and reaches the backend, with forward_empty_datagrams', async () => {
  const [backend, port] = [await startBackend('empty', { answers: 0 }), await freePort()];
  await startProxy(
    toml({
      listen: `127.0.0.1:${port}`,
      backends: [backend],
      udp: {
        forward_empty_datagrams: true,
        send_proxy_protocol: true,
        proxy_protocol_every_datagram: true,
      },
    }),
  );
  const client = await openClient({ to: port });
  // Alone it opens nothing: the first that arrives is the one with a byte in it.
  await client.send('');
  await client.send('x');
  await client.send('');
  const [opening, empty] = [await backend.arrivals.next(), await backend.arrivals.next()];
  expect(String(opening.payload)).toBe('x');
  expect(empty.datagram.length, 'the header alone').toBe(28);
  expect(empty.client).toBe(`127.0.0.1:${client.port}`);
});
