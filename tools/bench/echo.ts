/**
 * The echo backend of peers.c over node:dgram, for a machine without a C compiler. Prints
 * "listening PORT".
 */
import { createSocket } from 'node:dgram';

const socket = createSocket({ type: 'udp4', recvBufferSize: 4 << 20 });
socket.on('message', (message, from) => socket.send(message, from.port, from.address));
socket.bind(0, '127.0.0.1', () => process.stdout.write(`listening ${socket.address().port}\n`));
process.stdin.on('end', () => socket.close()).resume();
