/**
 * How many flows a range of ephemeral ports carries: `node port-range.mjs FILE`, as root in a network namespace
 * whose range is small. Prints what the proxy counted and how many flows came from each address. Clients and backends have
 * fixed ports outside the range, so that every port of it is the proxy's.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { listenerId, unaccountedDatagrams } from '../../dist/core/index.js';
import { createLog, parseConfig, Proxy } from '../../dist/shell/index.js';

const CLIENTS = 100;

const { config } = parseConfig(readFileSync(process.argv[2]));

const flows = {};
for (const { address } of config.clusters[0].backends) {
  const backend = await bound(address.port);
  backend.on('message', (_, from) => {
    flows[from.address] = (flows[from.address] ?? 0) + 1;
  });
}
const proxy = new Proxy(config, createLog('fatal'));
const counters = proxy.figures.counters.get(listenerId(0));
const clients = [];
for (let number = 0; number < CLIENTS; number += 1) clients.push(await bound(20_000 + number));
for (const client of clients) client.send('hello', config.listeners[0].address.port, '127.0.0.1');
while (counters.clientReceived < CLIENTS || unaccountedDatagrams(counters) > 0) await setTimeout(1);
while (sum(Object.values(flows)) < counters.forwarded) await setTimeout(1);
process.stdout.write(`${JSON.stringify({ flows, counters, clients: CLIENTS })}\n`);
process.exit(0);

async function bound(port) {
  const socket = createSocket('udp4').bind(port, '127.0.0.1');
  await once(socket, 'listening');
  return socket;
}

function sum(numbers) {
  return numbers.reduce((total, one) => total + one, 0);
}
