/**
 * The load generator of peers.c over node:dgram, for a machine without a C compiler: the same words
 * on stdin and stdout. Slower than the proxies it loads, so processor time per round trip still
 * compares but the proxies are not saturated. Usage: load.js PORT FLOWS WINDOW BYTES
 */
import { createSocket, type Socket } from 'node:dgram';
import { createInterface } from 'node:readline';

interface Flow {
  readonly socket: Socket;
  inFlight: number;
  lastSent: number;
}

/** As in peers.c, and for the same reasons. */
const BURST = 64;
const CHECK_MS = 2;
const OVERDUE_MS = 250;

const [port = 0, flowCount = 1, window = 1, bytes = 64] = process.argv.slice(2).map(Number);
const payload = Buffer.alloc(bytes);
const flows = await Promise.all(Array.from({ length: flowCount }, openFlow));
let slice = 0;
let end = 0;
let lastReply = 0;
let trips = 0;

process.stdout.write('ready\n');
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${await runSlice(Number(line))}\n`);
}
for (const flow of flows) flow.socket.close();

function openFlow(): Promise<Flow> {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 4 << 20 });
  const flow = { socket, inFlight: 0, lastSent: 0 };
  socket.on('message', (reply) => takeReply(flow, reply));
  return new Promise((resolve) => {
    socket.connect(port, '127.0.0.1', () => resolve(flow));
  });
}

function takeReply(flow: Flow, reply: Buffer): void {
  if (reply.readUInt32LE(0) !== slice) return;
  lastReply = performance.now();
  trips += 1;
  flow.inFlight -= 1;
  if (lastReply < end) topUp(flow, lastReply);
}

function topUp(flow: Flow, now: number): void {
  for (; flow.inFlight < window; flow.inFlight += 1) flow.socket.send(payload);
  flow.lastSent = now;
}

function runSlice(lengthMs: number): Promise<string> {
  slice += 1;
  trips = 0;
  for (const flow of flows) flow.inFlight = 0;
  payload.writeUInt32LE(slice, 0);
  lastReply = performance.now();
  end = lastReply + lengthMs;
  let lost = 0;
  return new Promise((resolve) => {
    const check = setInterval(() => {
      const now = performance.now();
      if (now < end) lost += revive(now);
      else if (inFlight() === 0 || now - Math.max(end, lastReply) > OVERDUE_MS) {
        clearInterval(check);
        resolve(`${trips} ${lost + inFlight()}`);
      }
    }, CHECK_MS);
  });
}

function revive(now: number): number {
  let lost = 0;
  let burst = 0;
  for (const flow of flows) {
    if (burst >= BURST) break;
    if (flow.inFlight > 0 && now - flow.lastSent < OVERDUE_MS) continue;
    lost += flow.inFlight;
    flow.inFlight = 0;
    topUp(flow, now);
    burst += window;
  }
  return lost;
}

function inFlight(): number {
  return flows.reduce((sum, flow) => sum + flow.inFlight, 0);
}
