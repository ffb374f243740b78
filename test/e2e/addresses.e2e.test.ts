/** Who is who: sockets of one host, IPv6, and IPv4 clients on an IPv6 wildcard. */
import { expect, test } from 'vitest';
import { startBackend, type Arrival } from './backend.ts';
import { openClient } from './client.ts';
import { needIpv6 } from './peers.ts';
import { freePort } from './ports.ts';
import { startProxy, toml } from './proxy.ts';

test('two sockets of one client address get their own replies, in whatever order those come', async () => {
  const backend = await startBackend('alpha', { answers: 0 });
  const port = await freePort();
  await startProxy(toml({ listen: `127.0.0.1:${port}`, backends: [backend] }));
  const [one, other] = [await openClient({ to: port }), await openClient({ to: port })];
  await one.send('one');
  await other.send('other');
  const [first, second] = [await backend.arrivals.next(), await backend.arrivals.next()];
  expect([first, second].map(({ payload }) => String(payload))).toEqual(['one', 'other']);
  second.reply('for the other');
  first.reply('for the one');
  expect(String(await one.replies.next())).toBe('for the one');
  expect(String(await other.replies.next())).toBe('for the other');
  expect([one.replies.all.length, other.replies.all.length]).toEqual([1, 1]);
});

test('an IPv6 client reaches an IPv6 backend, and the PROXY header says so', async (context) => {
  needIpv6(context);
  const backend = await startBackend('six', { address: '::1' });
  const port = await freePort();
  const proxy = await startProxy(
    toml({
      listen: `[::1]:${port}`,
      backends: [backend],
      udp: { send_proxy_protocol: true },
    }),
  );
  const client = await openClient({ to: port, at: '::1' });
  expect(await client.ask('hello')).toBe('six: hello');
  const arrival = await backend.arrivals.next();
  expect(familyOf(arrival)).toBe(0x22);
  expect(arrival.client).toBe(`[::1]:${client.port}`);
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 1 });
});

test('an IPv6 client reaches an IPv4 backend, and the PROXY header keeps its address', async (context) => {
  needIpv6(context);
  const backend = await startBackend('four');
  const port = await freePort();
  await startProxy(
    toml({ listen: `[::1]:${port}`, backends: [backend], udp: { send_proxy_protocol: true } }),
  );
  const client = await openClient({ to: port, at: '::1' });
  expect(await client.ask('hello')).toBe('four: hello');
  const arrival = await backend.arrivals.next();
  expect(familyOf(arrival)).toBe(0x22);
  expect(arrival.client).toBe(`[::1]:${client.port}`);
});

test('on [::] an IPv4 client is IPv4 to the backend, and gets its reply', async (context) => {
  needIpv6(context);
  const backend = await startBackend('four');
  const port = await freePort();
  const proxy = await startProxy(
    toml({ listen: `[::]:${port}`, backends: [backend], udp: { send_proxy_protocol: true } }),
  );
  const four = await openClient({ to: port });
  const six = await openClient({ to: port, at: '::1' });
  expect(await four.ask('from IPv4')).toBe('four: from IPv4');
  expect(await six.ask('from IPv6')).toBe('four: from IPv6');
  const arrival = await backend.arrivals.next();
  expect(familyOf(arrival)).toBe(0x12);
  expect(arrival.client).toBe(`127.0.0.1:${four.port}`);
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 2 });
});

test('on [::] the subnets of IPv4 clients are IPv4 subnets', async (context) => {
  needIpv6(context);
  const backend = await startBackend('four');
  const port = await freePort();
  await startProxy(
    toml({
      listen: `[::]:${port}`,
      backends: [backend],
      cluster: { max_connections_per_subnet: 1 },
    }),
  );
  const first = await openClient({ to: port, from: '127.0.0.1' });
  const neighbour = await openClient({ to: port, from: '127.0.0.9' });
  const stranger = await openClient({ to: port, from: '127.0.1.9' });
  expect(await first.ask('first')).toBe('four: first');
  await neighbour.send('neighbour');
  expect(await stranger.ask('stranger')).toBe('four: stranger');
  expect(backend.heard).toEqual(['first', 'stranger']);
});

test('the wildcard twins 0.0.0.0 and [::] share a port, and both serve', async (context) => {
  needIpv6(context);
  const backend = await startBackend('four');
  const port = await freePort();
  const proxy = await startProxy(
    toml({ listen: [`0.0.0.0:${port}`, `[::]:${port}`], backends: [backend] }),
  );
  const four = await openClient({ to: port });
  const six = await openClient({ to: port, at: '::1' });
  expect(await four.ask('from IPv4')).toBe('four: from IPv4');
  expect(await six.ask('from IPv6')).toBe('four: from IPv6');
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 2 });
});

/** Family and transport byte of the PROXY header. */
function familyOf({ datagram }: Arrival): number | undefined {
  return datagram[13];
}
