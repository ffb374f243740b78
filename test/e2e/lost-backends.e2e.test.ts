/** A client that never pauses, and backends that die, go or come: what becomes of its flow. */
import { expect, onTestFinished, test } from 'vitest';
import { startBackend, type Backend } from './backend.ts';
import { openClient, type Client } from './client.ts';
import { startEcho, type Echo } from './echo.ts';
import { ADMIN, adminOf, scrape, sumOf } from './http.ts';
import { freePort } from './ports.ts';
import { rewriteConfig, startProxy, toml, type ProxyProcess } from './proxy.ts';

const PERIOD_MILLISECONDS = 10;
/** One sender is one flow, and the refusals of one flow prove nothing: a probe has to say it. */
const EVERY_SECOND = { probe_interval_seconds: 1, probe_timeout_seconds: 1, fall: 1, rise: 1 };
/** From the sender's tick to the proxy's clock: both processes share two cores with the rest. */
const CLOCKS_MILLISECONDS = 2 * PERIOD_MILLISECONDS;

test('with on_backend_down = "rebind" a constant sender loses what it sent until the verdict, and one more at most', async () => {
  const { alpha, sender, proxy } = await start('rebind');
  const killedAt = performance.timeOrigin + performance.now();
  alpha.child.signal('SIGKILL');
  const ejected = await proxy.told('backend down', alpha.endpoint);
  const verdictAt = Number(ejected['time']);
  await sender.untilAnsweredBy('beta');
  sender.stop();
  const lost = sender.lostAfter(killedAt);
  const afterVerdict = lost.filter((at) => at > verdictAt + CLOCKS_MILLISECONDS);
  process.stdout.write(
    `rebind: verdict after ${Math.round(verdictAt - killedAt)} ms, ${lost.length} datagrams lost, ` +
      `${afterVerdict.length} of them after it (wanted: at most 1)\n`,
  );
  expect(afterVerdict.length).toBeLessThanOrEqual(1);
  expect((await proxy.softStop()).code).toBe(0);
});

test('with on_backend_down = "close" the flow ends and the sender goes on with another', async () => {
  const { alpha, sender, proxy } = await start('close');
  alpha.child.signal('SIGKILL');
  await proxy.told('backend down', alpha.endpoint);
  await sender.untilAnsweredBy('beta');
  sender.stop();
  expect((await proxy.softStop()).code).toBe(0);
});

test('with on_backend_down = "pin" the flow stays where it is, and goes on when the backend is back', async () => {
  const { alpha, sender, proxy } = await start('pin');
  alpha.child.signal('SIGKILL');
  await alpha.child.exit;
  await proxy.told('backend down', alpha.endpoint);
  await sender.untilSent(100);
  expect(sender.answeredBy()).toEqual(['alpha']);
  await startEcho('alpha again', alpha.port);
  await sender.untilAnsweredBy('alpha again');
  sender.stop();
  expect(sender.answeredBy()).toEqual(['alpha', 'alpha again']);
  expect((await proxy.softStop()).code).toBe(0);
});

test('removal of the only backend drops what comes as no_backend; a new one gets the next datagram', async () => {
  const [alpha, beta, port] = [await startBackend('a'), await startBackend('b'), await freePort()];
  const listen = `127.0.0.1:${port}`;
  const config = (...backends: Backend[]): string => toml({ listen, backends }).concat(ADMIN);
  const proxy = await startProxy(config(alpha));
  const url = await adminOf(proxy);
  const client = await openClient({ to: port });
  expect(await client.ask('one')).toBe('a: one');
  await rewriteConfig(proxy, config());
  await client.send('two');
  await client.send('three');
  // A worker reads them when its thread runs, which may be after it was told of a new backend.
  while (sumOf(await scrape(url), 'sozu_udp_datagrams_received_client_total') < 3);
  await rewriteConfig(proxy, config(beta));
  expect(await client.ask('four')).toBe('b: four');
  expect(alpha.heard).toEqual(['one']);
  expect(beta.heard).toEqual(['four']);
  expect((await proxy.softStop()).code).toBe(0);
  expect(proxy.logs.all.find(({ msg }) => msg === 'stopped')).toMatchObject({
    received: 6,
    forwarded: 2,
    returned: 2,
    dropped: { no_backend: 2 },
  });
});

test('with on_backend_removed = "pin" a removed backend keeps its flows', async () => {
  const [alpha, beta, port] = [await startBackend('a'), await startBackend('b'), await freePort()];
  const listen = `127.0.0.1:${port}`;
  const udp = { on_backend_removed: 'pin' };
  const proxy = await startProxy(toml({ listen, backends: [alpha], udp }));
  const client = await openClient({ to: port });
  expect(await client.ask('one')).toBe('a: one');
  await rewriteConfig(proxy, toml({ listen, backends: [beta], udp }));
  expect(await client.ask('two')).toBe('a: two');
  expect(await (await openClient({ to: port })).ask('three')).toBe('b: three');
  expect((await proxy.softStop()).code).toBe(0);
});

interface Setting {
  readonly alpha: Echo;
  readonly proxy: ProxyProcess;
  readonly sender: Sender;
}

/** A sender whose flow is on alpha; beta is there too. */
async function start(on_backend_down: string): Promise<Setting> {
  const [alpha, beta] = [await startEcho('alpha'), await startEcho('beta')];
  const port = await freePort();
  const proxy = await startProxy(
    toml({
      listen: `127.0.0.1:${port}`,
      backends: [alpha.endpoint, beta.endpoint],
      udp: { on_backend_down },
      health: { ...EVERY_SECOND, mode: 'UDP_PROBE', udp_probe_payload: 'anybody?' },
    }),
  );
  const sender = new Sender(await openClient({ to: port }));
  await sender.untilAnsweredBy('alpha');
  return { alpha, proxy, sender };
}

/** A hundred datagrams a second from one socket, each with its number. */
class Sender {
  private readonly client: Client;
  /** When each was sent, in milliseconds since 1970. */
  private readonly sentAt: number[] = [];
  private readonly timer: NodeJS.Timeout;
  private readonly waiters = new Set<() => void>();

  constructor(client: Client) {
    this.client = client;
    this.timer = setInterval(() => this.send(), PERIOD_MILLISECONDS);
    onTestFinished(() => this.stop());
  }

  stop(): void {
    clearInterval(this.timer);
  }

  /** Who answered so far, each named once, in the order of their first answers. */
  answeredBy(): string[] {
    return [...new Set(this.answers().map(({ name }) => name))];
  }

  /** When those were sent that came after `since` and had no answer, up to the last that had one. */
  lostAfter(since: number): number[] {
    const answered = new Set(this.answers().map(({ number }) => number));
    const last = Math.max(...answered);
    return this.sentAt.filter((at, number) => at > since && number < last && !answered.has(number));
  }

  untilAnsweredBy(name: string): Promise<unknown> {
    return this.client.replies.first((reply) => String(reply).startsWith(`${name}:`), name);
  }

  /** So many more from now. */
  async untilSent(more: number): Promise<void> {
    const enough = this.sentAt.length + more;
    while (this.sentAt.length < enough) {
      await new Promise<void>((resolve) => this.waiters.add(resolve));
    }
  }

  private send(): void {
    void this.client.send(String(this.sentAt.length));
    this.sentAt.push(performance.timeOrigin + performance.now());
    for (const waiter of this.waiters) waiter();
    this.waiters.clear();
  }

  private answers(): { name: string; number: number }[] {
    return this.client.replies.all.map((reply) => {
      const [name = '', number] = String(reply).split(': ');
      return { name, number: Number(number) };
    });
  }
}
