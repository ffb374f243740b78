/** dnsperf through the proxy to unbound: every query answered. Shows its figures. */
import { expect, test } from 'vitest';
import { runToEnd } from './child.ts';
import { needPeers } from './peers.ts';
import { freePort } from './ports.ts';
import { startProxy, temporaryFile, toml } from './proxy.ts';
import { startUnbound } from './unbound.ts';

/** SOZU_UDP_DNSPERF_SECONDS asks for as many as one likes: 60 before a release. */
const USUAL_SECONDS = process.env['CI'] === 'true' ? '15' : '5';
const SECONDS = Number(process.env['SOZU_UDP_DNSPERF_SECONDS'] ?? USUAL_SECONDS);
const QUERIES_PER_SECOND = 10_000;
/** What is asked of any machine that has a server at all. */
const QUERIES_PER_SECOND_MIN = 1_000;
/** Of the queries asked; the rest is left to a machine that is busy with other things. */
const SHARE_MIN = 0.8;
/** Long enough to see whether unbound alone keeps up. */
const TRIAL_SECONDS = 2;

test('dnsperf gets an answer to each of its queries through the proxy, at the rate it asks', async (context) => {
  needPeers(context, 'unbound', 'dnsperf');
  const port = await freePort();
  const unbound = await startUnbound({ records: { 'www.test': '192.0.2.1' }, logQueries: false });
  const proxy = await startProxy(
    toml({
      listen: `127.0.0.1:${port}`,
      backends: [`127.0.0.1:${unbound.port}`],
      udp: { responses: 0 },
    }),
  );
  const alone = await dnsperf(unbound.port, TRIAL_SECONDS, QUERIES_PER_SECOND);
  show('unbound alone', alone);
  const rate = rateFor(alone);
  const through = await dnsperf(port, SECONDS, rate);
  show('through the proxy', through);
  expect(through.lost).toBe(0);
  expect(through.completed).toBe(through.sent);
  expect(through.noError).toBe(through.sent);
  // Queries come at the rate asked only as long as answers do: dnsperf waits with 100 of them open.
  if (alone.completed >= SHARE_MIN * rate * TRIAL_SECONDS) {
    expect(through.completed).toBeGreaterThanOrEqual(SHARE_MIN * rate * SECONDS);
  }
  expect(await proxy.softStop()).toEqual({ code: 0, flowsClosed: 1 });
});

test('preset = "dns" loses nothing of one source port with 200 queries in flight', async (context) => {
  needPeers(context, 'unbound', 'dnsperf');
  const port = await freePort();
  const unbound = await startUnbound({ records: { 'www.test': '192.0.2.1' }, logQueries: false });
  const proxy = await startProxy(
    toml({
      listen: `127.0.0.1:${port}`,
      backends: [`127.0.0.1:${unbound.port}`],
      udp: { preset: 'dns' },
    }),
  );
  // Without a rate dnsperf asks as soon as one of its queries is answered: 200 are always open.
  const through = await dnsperf(port, Math.min(SECONDS, 10), undefined, 200);
  show('one port, 200 in flight', through);
  expect(through).toMatchObject({ lost: 0, completed: through.sent, noError: through.sent });
  expect((await proxy.softStop()).code).toBe(0);
});

interface Figures {
  readonly sent: number;
  readonly completed: number;
  readonly lost: number;
  readonly noError: number;
  /** Queries answered in a second. */
  readonly rate: number;
}

/** The full rate, or half of what unbound by itself can answer here: that says nothing about the proxy. */
function rateFor(alone: Figures): number {
  const wanted = TRIAL_SECONDS * QUERIES_PER_SECOND;
  if (alone.lost === 0 && alone.sent > 0.95 * wanted) return QUERIES_PER_SECOND;
  const half = Math.floor(alone.completed / TRIAL_SECONDS / 2);
  const rate = Math.max(half, QUERIES_PER_SECOND_MIN);
  process.stdout.write(`dnsperf: unbound alone is too slow here; asking ${rate} a second\n`);
  return rate;
}

/** One client with one source port; 100 queries in flight at most, dnsperf's default, and no rate unless given. */
async function dnsperf(
  port: number,
  seconds: number,
  rate: number | undefined,
  inFlight = 100,
): Promise<Figures> {
  const questions = temporaryFile('questions', 'www.test A\n');
  const server = ['-s', '127.0.0.1', '-p', String(port)];
  const load = ['-d', questions, '-l', String(seconds), '-q', String(inFlight)];
  const paced = rate === undefined ? [] : ['-Q', String(rate)];
  const { code, stdout, stderr } = await runToEnd('dnsperf', [...server, ...load, ...paced]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const figure = (name: string): number =>
    Number(new RegExp(`${name}:?\\s+([0-9.]+)`).exec(stdout)?.[1]);
  return {
    sent: figure('Queries sent'),
    completed: figure('Queries completed'),
    lost: figure('Queries lost'),
    noError: figure('NOERROR'),
    rate: figure('Queries per second'),
  };
}

function show(what: string, { sent, completed, lost, rate }: Figures): void {
  process.stdout.write(
    `dnsperf, ${what}: queries sent ${sent}, completed ${completed}, lost ${lost}, ` +
      `${Math.round(rate)} a second\n`,
  );
}
