/** The push: Sōzu's names, deltas that add up, nothing that did not change, and no datagram too long. */
import * as fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { figuresOf, listenerId } from '../core/index.ts';
import { ControlBench } from '../test/control-bench.ts';
import { LOCAL } from '../test/driver-bench.ts';
import { LoopbackPeer } from '../test/loopback-peer.ts';
import { addressOf, backendsOf, clusterSettings, configOf } from '../test/plane-bench.ts';
import type { StatsdSettings } from './config/watchers.ts';
import { batches, BATCH_BYTES_MAX, Statsd } from './statsd.ts';

let server: LoopbackPeer;
let bench: ControlBench;
let statsd: Statsd | undefined;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  server = new LoopbackPeer(LOCAL);
  bench = new ControlBench();
  bench.configure(configOf([clusterSettings({ cluster: 'c', backends: backendsOf(1) })]));
});

afterEach(() => {
  statsd?.close();
  statsd = undefined;
  server.close();
  vi.useRealTimers();
});

test('tells what came since the last push, and of gauges what they are', async () => {
  start();
  bench.ask('10.9.0.1:1');
  bench.ask('10.9.0.1:1');
  expect(await pushed()).toEqual(
    new Set([
      'sozu.udp.datagrams.received.client:2|c',
      'sozu.udp.datagrams.in:2|c',
      'sozu.udp.bytes.in:2|c',
      'sozu.udp.datagrams.forwarded:2|c',
      'sozu.udp.flows.created:1|c',
      'sozu.udp.active_flows:1|g',
      'sozu.c.cluster.available_backends:1|g',
      'sozu.c.cluster.total_backends:1|g',
    ]),
  );
  bench.ask('10.9.0.1:1');
  bench.pump.clientDatagram(listenerId(0), addressOf('10.9.0.1:1'), undefined, new Uint8Array());
  bench.pump.endTurn();
  expect(await pushed()).toEqual(
    new Set([
      'sozu.udp.datagrams.received.client:2|c',
      'sozu.udp.datagrams.in:1|c',
      'sozu.udp.bytes.in:1|c',
      'sozu.udp.datagrams.forwarded:1|c',
      'sozu.udp.datagrams.dropped.invalid:1|c',
      'sozu.udp.datagrams.dropped:1|c',
    ]),
  );
});

test('writes a cluster as a tag where told to, and makes any name safe', async () => {
  bench.configure(configOf([clusterSettings({ cluster: 'a|b:c\nd', backends: backendsOf(1) })]));
  start({ tagged: true, prefix: 'edge.sozu' });
  const lines = await pushed();
  expect(lines).toContain('edge.sozu.cluster.total_backends,cluster_id=a_b_c_d:1|g');
  for (const line of lines)
    expect(line).toMatch(/^edge\.sozu[\w.]+(?:,cluster_id=[\w-]+)?:\d+\|[cg]$/);
});

test('clusters that have one name there are told together', async () => {
  const named = (
    cluster: string,
    ...backends: readonly number[]
  ): ReturnType<typeof clusterSettings> =>
    clusterSettings({ cluster, backends: backendsOf(...backends) });
  bench.configure(configOf([named('dns.eu', 1), named('dns_eu', 2, 3)]));
  start();
  expect(await pushed()).toContain('sozu.dns_eu.cluster.total_backends:3|g');
  bench.ask('10.9.0.1:1');
  const next = [...(await pushed())];
  expect(next.filter((line) => line.startsWith('sozu.dns_eu'))).toEqual([]);
});

test('leaves clusters out where told to', async () => {
  start({ clusters: false });
  expect(await pushed()).toEqual(new Set(['sozu.udp.active_flows:0|g']));
});

test('a server that is gone costs nothing but a count, and its return is noticed', async () => {
  start();
  server.close();
  bench.ask('10.9.0.1:1');
  vi.advanceTimersByTime(1_000);
  await vi.waitFor(() => {
    bench.ask('10.9.0.1:1');
    vi.advanceTimersByTime(1_000);
    expect(statsd?.failed).toBeGreaterThan(0);
  });
  server.reopen();
  bench.ask('10.9.0.1:1');
  await vi.waitFor(() => {
    bench.ask('10.9.0.1:1');
    vi.advanceTimersByTime(1_000);
    expect(server.mailbox.length).toBeGreaterThan(0);
  });
});

test('lines are joined in order, in datagrams that fit a packet, and none is lost', () => {
  const lines = fc.array(
    fc.string({ minLength: 1, maxLength: 400 }).filter((s) => !s.includes('\n')),
  );
  fc.assert(
    fc.property(lines, (all) => {
      const joined = batches(all);
      expect(joined.flatMap((batch) => batch.split('\n'))).toEqual(all);
      for (const batch of joined) {
        expect(Buffer.byteLength(batch)).toBeLessThanOrEqual(
          batch.includes('\n') ? BATCH_BYTES_MAX : Infinity,
        );
      }
      for (const [at, batch] of joined.slice(1).entries()) {
        const [first = ''] = batch.split('\n');
        expect(Buffer.byteLength(`${joined[at]}\n${first}`)).toBeGreaterThan(BATCH_BYTES_MAX);
      }
    }),
  );
});

function start(settings: Partial<StatsdSettings> = {}): void {
  const usual = { address: server.address, prefix: 'sozu', tagged: false, clusters: true };
  statsd = new Statsd(
    { ...usual, ...settings },
    {
      refresh: () => Promise.resolve(),
      get measured() {
        return { figures: figuresOf(bench.plane), clusterSums: bench.control.clusterSums };
      },
    },
  );
}

/** The lines of the next push. */
async function pushed(): Promise<Set<string>> {
  server.mailbox.length = 0;
  vi.advanceTimersByTime(1_000);
  await vi.waitFor(() => expect(server.mailbox).not.toHaveLength(0));
  return new Set(
    server.mailbox.flatMap(({ payload }) => Buffer.from(payload).toString().split('\n')),
  );
}
