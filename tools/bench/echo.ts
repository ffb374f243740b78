/**
 * The backend of a bench: sends every datagram back where it came from. With `dns` it is a name server that knows no names:
 * the query comes back with the bit set that makes it an answer. Prints "listening PORT". Usage:
 * echo.js PORT [dns] [offload]
 */
import { ipv4, listenerId, type Arrivals, type Ports } from '../../core/index.ts';
import { peerDriver } from './peer-driver.ts';

const LISTENER = listenerId(0);
const LOOPBACK = 0x7f000001;
const ROOM = { ipv6Only: false, receiveBuffer: 4 << 20, sendBuffer: 4 << 20 };
/** Of the third byte of a DNS message: it answers. */
const IS_ANSWER = 0x80;
/** It costs a system call to look whether the parent is still there. */
const TURNS_PER_LOOK = 64;
const PATIENCE_MS = 100;

const [port = '0', ...manners] = process.argv.slice(2);
const isDns = manners.includes('dns');
const parent = process.ppid;
const peer = peerDriver({ offload: manners.includes('offload') });
const driver: Ports & Pick<typeof peer.driver, 'attach' | 'portOf'> = peer.driver;

const echo: Arrivals = {
  clientDatagram: (listener, src, _local, payload) => {
    if (isDns && payload.length > 2) payload[2] = (payload[2] ?? 0) | IS_ANSWER;
    driver.sendToClient(listener, src, undefined, payload);
  },
  clientTrain: (listener, src, _local, payload, unit) => {
    driver.trainToClient?.(listener, src, undefined, payload, unit);
    return driver.trainToClient !== undefined;
  },
  // What the kernel refused, the load will miss.
  endTurn: () => driver.flush(() => undefined),
  backendDatagram: () => undefined,
  backendTrain: () => false,
  refused: () => undefined,
  upstreamWritable: () => undefined,
  listenerWritable: () => undefined,
  lateSendFailure: () => undefined,
  timer: () => undefined,
};

driver.attach(echo);
const failed = driver.openListener(LISTENER, ipv4(LOOPBACK, Number(port)), ROOM);
if (failed !== undefined) throw new Error(`port ${port}: ${failed}`);
process.stdout.write(`listening ${driver.portOf(LISTENER) ?? 0}\n`);
// Nobody is left to stop it once the bench is gone.
let turns = 0;
await peer.run(() => {
  turns += 1;
  return turns % TURNS_PER_LOOK === 0 && process.ppid !== parent;
}, PATIENCE_MS);
process.exit();
