/**
 * 100,000 sources at 10,000 datagrams/s over real sockets, limits on, beside 50 flows of 20 datagrams/s that were there
 * before and 50 clients that open a flow for each query. core/flood.test.ts has the 200,000 in virtual time.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { Child, runNow } from './child.ts';
import { openClient, type Client } from './client.ts';
import { needPeers } from './peers.ts';
import { freePort } from './ports.ts';
import { startProxy, temporaryFile, toml, type ProxyProcess } from './proxy.ts';

const SOURCES = 100_000;
const RATE = 10_000;
const CLIENTS = 50;
/** Of a good client, and of one that opens a flow for each query. */
const [GOOD_MILLISECONDS, QUERY_MILLISECONDS] = [50, 200];
/** A query is given up after this long. */
const PATIENCE_MILLISECONDS = 1_000;
const MEBIBYTE = 1_048_576;

const LIMITS = `[clusters.e2e.udp.limits]
new_flows_per_second = 20
new_flows_burst = 40
datagrams_per_second = 100
datagrams_burst = 200
deny = ["192.0.2.0/24"]
allow = ["127.0.0.0/8"]
amplification_factor = 3
amplification_floor = 1232
`;

const COUNTED = z.object({
  counters: z.record(z.string(), z.number()),
  unaccounted: z.number(),
});

test('a flood from 100,000 sources costs those who have a flow nothing', async (context) => {
  needPeers(context, 'gcc');
  const program = temporaryFile('flood', '');
  runNow('gcc', ['-O2', '-o', program, fileOf('flood.c')]);
  const echo = new Child(program, ['echo']);
  const [, backend] = (await echo.stdout.next()).split(' ');
  const port = await freePort();
  const setup = toml({
    listen: `127.0.0.1:${port}`,
    backends: [`127.0.0.1:${backend}`],
    // The slots are all taken soon, and each is free again after a second.
    listener: { max_flows: 2_000, front_timeout: 1, back_timeout: 1 },
    cluster: { max_connections_per_ip: 100 },
  });
  const proxy = await startProxy(setup + LIMITS, [fileOf('counting-proxy.mjs')]);
  const good = await Promise.all(
    Array.from({ length: CLIENTS }, (_, n) => openClient({ to: port, from: `127.1.0.${n + 1}` })),
  );
  for (const client of good) await client.ask('hello');

  const crowd = new Crowd(port, good);
  const memory: number[] = [];
  const began = Date.now();
  const flood = new Child(program, [port, SOURCES, RATE].map(String));
  crowd.start();
  const watch = setInterval(() => memory.push(residentBytes(proxy)), 250);
  expect(await flood.exit).toEqual({ code: 0, signal: null });
  const ended = Date.now();
  clearInterval(watch);
  await crowd.stop();

  const lines = proxy.logs.all.filter(({ time }) => Number(time) >= began && Number(time) <= ended);
  proxy.signal('SIGTERM');
  const { counters, unaccounted } = COUNTED.parse(await proxy.logged('counted'));
  const { droppedShed, droppedNewFlowRate, droppedDatagramRate, flowsCreated } = counters;
  // Half a second in, all its code is warm.
  const grown = Math.max(...memory) - (memory[1] ?? 0);
  process.stdout.write(
    `flood over sockets: ${flood.stdout.all.join()}; good ${share(crowd.answered, crowd.sent)}, ` +
      `a flow per query ${share(crowd.queriesAnswered, crowd.queriesSent)}, ${lines.length} log lines, ` +
      `${(grown / MEBIBYTE).toFixed(1)} MiB more than after half a second, ` +
      `${JSON.stringify({ flowsCreated, droppedShed, droppedNewFlowRate, droppedDatagramRate })}\n`,
  );
  expect(crowd.answered / crowd.sent).toBeGreaterThanOrEqual(0.999);
  expect(unaccounted).toBe(0);
  // Each source would be worth a kilobyte, and more, to a program that remembers it.
  expect(grown).toBeLessThan(64 * MEBIBYTE);
  expect(lines.length).toBeLessThanOrEqual((ended - began) / 1_000);
  expect(droppedShed).toBeGreaterThan(SOURCES / 2);
});

/** The clients that are to be served. What they send is spread over their interval. */
class Crowd {
  sent = 0;
  queriesSent = 0;
  queriesAnswered = 0;
  private readonly port: number;
  private readonly good: readonly Client[];
  private readonly before: number;
  private readonly timers: NodeJS.Timeout[] = [];
  private readonly queries: Promise<void>[] = [];

  constructor(port: number, good: readonly Client[]) {
    this.port = port;
    this.good = good;
    this.before = this.replies;
  }

  /** Replies to good clients since the start. */
  get answered(): number {
    return this.replies - this.before;
  }

  start(): void {
    const began = performance.now();
    const inTurn = (milliseconds: number, act: (client: number) => void): void => {
      let turn = 0;
      const catchUp = (): void => {
        const due = ((performance.now() - began) * CLIENTS) / milliseconds;
        for (; turn < due; turn += 1) act(turn % CLIENTS);
      };
      this.timers.push(setInterval(catchUp, 1));
    };
    inTurn(GOOD_MILLISECONDS, (client) => void this.send(this.good[client]));
    inTurn(QUERY_MILLISECONDS, (client) => this.queries.push(this.query(`127.2.0.${client + 1}`)));
  }

  /** No more is sent; waits for what is on its way. Replies keep their order, so the last one to come brings the others. */
  async stop(): Promise<void> {
    this.timers.forEach(clearInterval);
    await Promise.all(this.queries);
    for (const client of this.good) {
      await this.send(client);
      await client.replies.first((reply) => String(reply) === `number ${this.sent}`, 'the last');
    }
  }

  private get replies(): number {
    return this.good.reduce((sum, { replies }) => sum + replies.all.length, 0);
  }

  private async send(client: Client | undefined): Promise<void> {
    this.sent += 1;
    await client?.send(`number ${this.sent}`);
  }

  /** From a socket of its own. */
  private async query(from: string): Promise<void> {
    const socket = createSocket('udp4');
    socket.bind(0, from);
    await once(socket, 'listening');
    this.queriesSent += 1;
    socket.send('query', this.port, '127.0.0.1');
    const patience = AbortSignal.timeout(PATIENCE_MILLISECONDS);
    const answer = await once(socket, 'message', { signal: patience }).catch(() => undefined);
    if (answer !== undefined) this.queriesAnswered += 1;
    socket.close();
  }
}

function residentBytes(proxy: ProxyProcess): number {
  const status = readFileSync(`/proc/${proxy.child.pid}/status`, 'latin1');
  return 1_024 * Number(/VmRSS:\s*(\d+)/.exec(status)?.[1]);
}

function share(some: number, all: number): string {
  return `${((100 * some) / all).toFixed(3)} % of ${all}`;
}

function fileOf(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}
