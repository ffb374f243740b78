/**
 * One client with one datagram on its way, for the bench of the flow list: how long the slowest round trip took. Prints
 * "ready", then for each line with a number of milliseconds the trips, and the longest and the median in microseconds.
 * Usage: pinger.js PORT
 */
import { createSocket } from 'node:dgram';
import { createInterface } from 'node:readline';

const socket = createSocket('udp4');
await new Promise<void>((resolve) => {
  socket.connect(Number(process.argv[2]), '127.0.0.1', resolve);
});
process.stdout.write('ready\n');
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${await ping(Number(line))}\n`);
}
socket.close();

/** The next one leaves when the last is back; one that is lost is asked again. */
function ping(lengthMs: number): Promise<string> {
  const trips: number[] = [];
  const end = performance.now() + lengthMs;
  let sentAt = 0;
  const send = (): void => {
    sentAt = performance.now();
    socket.send('ping');
  };
  return new Promise((resolve) => {
    const check = setInterval(() => {
      if (performance.now() - sentAt > 250) send();
    }, 50);
    socket.removeAllListeners('message');
    socket.on('message', () => {
      const now = performance.now();
      trips.push((now - sentAt) * 1_000);
      if (now < end) return send();
      clearInterval(check);
      trips.sort((one, other) => one - other);
      const [longest, middle] = [trips.at(-1) ?? 0, trips[trips.length >> 1] ?? 0];
      return resolve(`${trips.length} ${Math.round(longest)} ${Math.round(middle)}`);
    });
    send();
  });
}
