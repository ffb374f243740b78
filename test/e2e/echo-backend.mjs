/**
 * A backend in a process of its own, to be killed: `node echo-backend.mjs PORT NAME [mute]` answers `NAME: payload` over UDP,
 * or nothing if it is mute, and accepts TCP connections on the same port. It says `ready`, then `connected` for each connection, and what it heard.
 */
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';

const [port, name, mute] = process.argv.slice(2);
const socket = createSocket('udp4');
socket.on('message', (payload, from) => {
  process.stdout.write(`heard ${payload.toString('hex')}\n`);
  if (mute === undefined) socket.send([`${name}: `, payload], from.port, from.address);
});
const server = createServer((connection) => {
  process.stdout.write('connected\n');
  connection.on('error', () => undefined);
  connection.on('data', (data) => process.stdout.write(`TCP ${data.toString('hex')}\n`));
});
socket.bind(Number(port), '127.0.0.1', () => {
  server.listen(Number(port), '127.0.0.1', () => process.stdout.write('ready\n'));
});
