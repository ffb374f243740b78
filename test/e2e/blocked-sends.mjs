/**
 * Makes the proxy's sends block, and prints what it counted and what arrived: `node blocked-sends.mjs FILE`, as root in a
 * network namespace of its own. Loopback never blocks by itself; behind a token bucket filter it does, once a socket's send buffer is full.
 * The burst is in the listener's receive buffer before the filter stands, so that only the proxy meets it.
 */
import { execFileSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { listenerId, unaccountedDatagrams } from '../../dist/core/index.js';
import { createLog, parseConfig, Proxy } from '../../dist/shell/index.js';

/** Enough to fill a send buffer of 208 KiB (166 of these) and a queue of 64, few enough for a receive buffer twice as large. */
const BURST = 280;
const PAYLOAD_BYTES = 500;

const { config } = parseConfig(readFileSync(process.argv.at(-1)));
const [listener] = config.listeners;
const [backendConfig] = config.clusters[0].backends;
const proxy = new Proxy(config, createLog('error'));
const counters = proxy.figures.counters.get(listenerId(0));

const heard = [];
const backend = createSocket('udp4');
backend.on('message', (payload, from) => {
  heard.push(payload.readUInt32BE());
  backend.send(payload, from.port, from.address);
});
backend.bind(backendConfig.address.port, '127.0.0.1');
await once(backend, 'listening');
const echoed = [];
const client = createSocket('udp4');
client.on('message', (payload) => echoed.push(payload.readUInt32BE()));
client.connect(listener.address.port, '127.0.0.1');
await once(client, 'connect');

await roundTrip(0);
for (let number = 1; number <= BURST; number += 1) client.send(numbered(number, PAYLOAD_BYTES));
execFileSync('tc', 'qdisc add dev lo root tbf rate 1kbit burst 2000 limit 10mb'.split(' '));
await until(() => counters.clientReceived === BURST + 1);
const blocked = snapshot();

execFileSync('tc', 'qdisc del dev lo root'.split(' '));
// What the filter held is gone with it; what arrives now had waited for room in the proxy's socket, or comes after it.
await until(() => unaccountedDatagrams(counters) === 0);
await roundTrip(BURST + 1);
proxy.stop();
await proxy.stopped;
backend.close();
client.close();
process.stdout.write(`${JSON.stringify({ burst: BURST, blocked, end: snapshot(), heard })}\n`);

function numbered(number, length) {
  const payload = Buffer.alloc(length);
  payload.writeUInt32BE(number);
  return payload;
}

/** Sends a small datagram and awaits its echo; echoes of the burst may come before it. */
async function roundTrip(number) {
  client.send(numbered(number, 4));
  await until(() => echoed.includes(number));
}

/** Ends between turns of the proxy, when its books are closed. */
async function until(condition) {
  while (!condition()) await nextTurn();
  await nextTurn();
}

function snapshot() {
  return { ...counters, unaccounted: unaccountedDatagrams(counters) };
}
