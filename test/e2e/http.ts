/** The HTTP server of a proxy under test: requests, raw bytes, scrapes and event streams. */
import { once } from 'node:events';
import { request, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import type { Client } from './client.ts';
import { Mailbox } from './mailbox.ts';
import type { ProxyProcess } from './proxy.ts';

/** For the end of a configuration: any port. */
export const ADMIN = '[admin]\naddress = "127.0.0.1:0"\n';

export interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Where a proxy with `ADMIN` serves. */
export async function adminOf(proxy: ProxyProcess): Promise<string> {
  return String((await proxy.logged('serving HTTP'))['url']);
}

export async function get(
  url: string,
  headers: Readonly<Record<string, string>> = {},
  method = 'GET',
): Promise<Answer> {
  const response = await responseTo(url, headers, method);
  const { statusCode: status } = response;
  return { status, headers: response.headers, body: await text(response) };
}

/** A body that is JSON, as an object. */
export async function getJson(url: string): Promise<Readonly<Record<string, unknown>>> {
  const parsed: unknown = JSON.parse((await get(url)).body);
  return { ...(typeof parsed === 'object' ? parsed : {}) };
}

/** Sends bytes as they are; resolves with what came back when the server has closed, politely or not. */
export async function raw(url: string, bytes: string): Promise<string> {
  const socket = dial(url);
  let answer = '';
  socket.setEncoding('utf8').on('data', (piece: string) => (answer += piece));
  socket.write(bytes);
  await closed(socket);
  return answer;
}

/** When a connection is over. That the server cut it off is no failure. */
export function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()));
}

/** A connection until the end of the test. A server that closes it is no failure. */
export function dial(url: string): Socket {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  return socket;
}

/** Series with their labels as Prometheus writes them, and their values. */
export async function scrape(url: string): Promise<ReadonlyMap<string, number>> {
  const { body } = await get(`${url}/metrics`);
  const lines = body.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const space = line.lastIndexOf(' ');
      return [line.slice(0, space), Number(line.slice(space + 1))];
    }),
  );
}

/** All series of a metric together. */
export function sumOf(series: ReadonlyMap<string, number>, name: string): number {
  const own = [...series].filter(([key]) => key === name || key.startsWith(`${name}{`));
  return own.reduce((sum, [, value]) => sum + value, 0);
}

/** Events of a stream, parsed, until the end of the test. */
export async function follow(url: string): Promise<Mailbox<Readonly<Record<string, unknown>>>> {
  const response = await responseTo(`${url}/events`, {}, 'GET');
  const events = new Mailbox<Readonly<Record<string, unknown>>>('the event stream');
  let rest = '';
  response.setEncoding('utf8');
  response.on('data', (piece: string) => {
    const blocks = (rest + piece).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const [, data] = /^data: (.*)$/m.exec(block) ?? [];
      if (data !== undefined) events.push({ ...JSON.parse(data) });
    }
  });
  onTestFinished(() => void response.destroy());
  return events;
}

/** One question after the other, each answered, until `work` is done; says how many. */
export async function askWhile(
  client: Client,
  name: string,
  work: Promise<unknown>,
): Promise<number> {
  const state = { isOver: false };
  const over = (): void => {
    state.isOver = true;
  };
  work.then(over, over);
  let asked = 0;
  while (!state.isOver) {
    asked += 1;
    const answer = await client.ask(`${asked}`);
    if (answer !== `${name}: ${asked}`) throw new Error(`asked ${asked}, answered ${answer}`);
  }
  await work;
  return asked;
}

async function responseTo(
  url: string,
  headers: Readonly<Record<string, string>>,
  method: string,
): Promise<IncomingMessage> {
  const asked = request(url, { headers: { ...headers }, method, agent: false });
  asked.end();
  const [response]: IncomingMessage[] = await once(asked, 'response');
  if (response === undefined) throw new Error(`no response from ${url}`);
  return response;
}
