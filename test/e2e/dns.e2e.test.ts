/** Real DNS: unbound behind the proxy, PROXY headers in every datagram, and the client's true address in its log. */
import { expect, test } from 'vitest';
import { openClient, type Client } from './client.ts';
import { query, readResponse } from './dns.ts';
import { needIpv6, needPeers } from './peers.ts';
import { freePort } from './ports.ts';
import { startProxy, toml } from './proxy.ts';
import { startUnbound } from './unbound.ts';

const ADDRESSES = ['127.0.0.9', '127.0.0.10', '127.0.0.11', '127.0.0.12'] as const;
const QUERIES_PER_CLIENT = 5;

test('unbound answers every query through the proxy and logs each client by its true address', async (context) => {
  needPeers(context, 'unbound');
  const port = await freePort();
  const records = Object.fromEntries(ADDRESSES.flatMap((from) => questionsOf(from)));
  const unbound = await startUnbound({ records, logQueries: true });
  const proxy = await startProxy(
    toml({
      listen: `127.0.0.1:${port}`,
      backends: [`127.0.0.1:${unbound.proxiedPort}`],
      udp: { send_proxy_protocol: true, proxy_protocol_every_datagram: true },
    }),
  );
  for (const from of ADDRESSES) {
    const client = await openClient({ to: port, from });
    await askAll(client, from);
    for (const [name] of questionsOf(from)) {
      await unbound.log.first(
        (line) => line.includes(`info: ${from} ${name}. A IN`),
        `${from} ${name}`,
      );
    }
  }
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: ADDRESSES.length });
});

test('unbound answers an IPv6 client through the proxy and logs its true address', async (context) => {
  needPeers(context, 'unbound');
  needIpv6(context);
  const port = await freePort();
  const unbound = await startUnbound({ records: { 'six.test': '192.0.2.6' }, logQueries: true });
  await startProxy(
    toml({
      listen: `[::1]:${port}`,
      backends: [`127.0.0.1:${unbound.proxiedPort}`],
      udp: { send_proxy_protocol: true, proxy_protocol_every_datagram: true },
    }),
  );
  const client = await openClient({ to: port, at: '::1' });
  await client.send(query(6, 'six.test'));
  const response = readResponse(await client.replies.next());
  expect(response).toEqual({ id: 6, rcode: 0, address: '192.0.2.6' });
  await unbound.log.first((line) => line.includes('info: ::1 six.test. A IN'), '::1');
});

/** Names and addresses that only this client asks for. */
function questionsOf(from: string): [name: string, address: string][] {
  const last = from.split('.').at(-1);
  return Array.from({ length: QUERIES_PER_CLIENT }, (_, index) => [
    `q${index}.client-${last}.test`,
    `192.0.2.${index + 1}`,
  ]);
}

/** All questions from one socket, without waiting in between; answers come in any order. */
async function askAll(client: Client, from: string): Promise<void> {
  const questions = questionsOf(from);
  for (const [id, [name]] of questions.entries()) await client.send(query(id, name));
  const responses = [];
  for (const _ of questions) responses.push(readResponse(await client.replies.next()));
  responses.sort((one, other) => one.id - other.id);
  expect(responses).toEqual(questions.map(([, address], id) => ({ id, rcode: 0, address })));
}
