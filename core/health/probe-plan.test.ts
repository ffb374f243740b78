/** Who is probed with what, and when. */
import { describe, expect, test } from 'vitest';
import { formatAddress } from '../address.ts';
import { present } from '../assert.ts';
import { backend, cluster, ONE, ProbeBench, QUESTION, TWO, UDP } from '../../test/probe-bench.ts';
import { decodeDgramHeader } from '../proxy-protocol.ts';
import { createRandom } from '../random.ts';
import { instant, seconds } from '../time.ts';
import { PROBES_IN_FLIGHT_MAX, ProbePlan } from './probe-plan.ts';

describe('what is asked', () => {
  test('a TCP probe goes to the companion port, or to that of the backend', () => {
    const bench = new ProbeBench();
    bench.configure([cluster({ tcpPort: 853 }), cluster({}, { cluster: 'other' })]);
    expect(bench.started.map(({ target }) => formatAddress(target))).toEqual([
      '10.0.0.1:853',
      '10.0.0.1:53',
    ]);
    expect(bench.started[0]).toMatchObject({ mode: 'tcp', payload: undefined, header: undefined });
  });

  test('a UDP probe sends the payload to the port of the backend, whatever the companion port is', () => {
    const bench = new ProbeBench();
    bench.configure([cluster({ ...UDP, tcpPort: 853 })]);
    expect(bench.started).toHaveLength(1);
    expect(bench.started[0]).toMatchObject({
      mode: 'udp',
      target: ONE,
      payload: QUESTION,
      header: undefined,
      expectReply: true,
    });
  });

  test('a probe of a backend that insists on PROXY headers carries a LOCAL one of 16 bytes', () => {
    const bench = new ProbeBench();
    bench.configure([cluster(UDP, { proxyProtocol: true })]);
    const header = present(bench.started[0]?.header, 'a header is there');
    expect(header).toHaveLength(16);
    expect(decodeDgramHeader(header)).toEqual({ kind: 'Local', payloadOffset: 16 });
    expect(header[12], 'version 2, LOCAL').toBe(0x20);
  });

  test('a companion port is another service and gets no header; the own port gets it over TCP too', () => {
    const bench = new ProbeBench();
    bench.configure([
      cluster({ tcpPort: 8080 }, { proxyProtocol: true }),
      cluster({}, { cluster: 'own', proxyProtocol: true }),
    ]);
    expect(bench.started.map(({ header }) => header?.length)).toEqual([undefined, 16]);
  });

  test('an address that stands twice in a cluster is probed once, in two clusters twice', () => {
    const bench = new ProbeBench();
    bench.configure([cluster({}, { backends: [ONE, ONE] }), cluster({}, { cluster: 'other' })]);
    expect(bench.started).toHaveLength(2);
    expect(bench.plan.targetCount).toBe(2);
  });

  test('HEALTH_OFF, and no block at all, probe nothing', () => {
    const bench = new ProbeBench();
    bench.configure([cluster({ mode: 'HEALTH_OFF' }), { ...cluster({}), settings: undefined }]);
    expect(bench.log).toEqual([]);
    expect(bench.plan.nextWake()).toBeUndefined();
    expect(bench.plan.healthOf('dns', ONE)).toBe('up');
  });
});

describe('when', () => {
  test('the first cycle is at once, backups and all', () => {
    const bench = new ProbeBench();
    bench.configure([cluster({}, { backends: [ONE, TWO] })]);
    expect(bench.started.map(({ probe }) => probe)).toEqual([1, 2]);
    expect(bench.plan.nextWake()).toEqual({ at: seconds(2), reason: 'probe-timeout' });
  });

  test('the next probe starts within the interval, and not before three quarters of it', () => {
    const bench = new ProbeBench();
    bench.configure([cluster({})]);
    bench.answer('ok');
    for (let round = 1; round <= 50; round += 1) {
      const before = present(bench.startedAt.at(-1), 'there was one');
      expect(bench.plan.nextWake()?.reason).toBe('probe-due');
      bench.wake();
      const gap = bench.now - before;
      expect(gap).toBeGreaterThanOrEqual(seconds(5) * 0.75);
      expect(gap).toBeLessThanOrEqual(seconds(5));
      bench.answer('ok');
    }
  });

  test('backends that came together do not stay together', () => {
    const bench = new ProbeBench();
    const backends = Array.from({ length: 50 }, (_, at) => backend(at));
    bench.configure([cluster({}, { backends })]);
    const first = bench.started.map(({ probe }) => probe);
    for (const probe of first) bench.answer('ok', probe);
    bench.started.length = 0;
    const moments = new Map<number, number>();
    while (bench.started.length < 50) {
      const before = bench.started.length;
      bench.wake();
      for (const { probe } of bench.started.slice(before)) bench.answer('ok', probe);
      moments.set(bench.now, bench.started.length - before);
    }
    expect(Math.max(...moments.values()), 'never two in one moment').toBe(1);
    const instants = [...moments.keys()];
    expect(Math.max(...instants) - Math.min(...instants)).toBeGreaterThan(seconds(1));
  });

  test('a backend has one probe at a time: one that outlasts the interval is followed at once', () => {
    const bench = new ProbeBench();
    bench.configure([cluster({ probeInterval: seconds(1), probeTimeout: seconds(3) })]);
    bench.wake();
    expect(bench.now).toBe(seconds(3));
    expect(bench.kinds()).toEqual(['StartProbe', 'CancelProbe', 'ProbeEnded', 'StartProbe']);
    expect(bench.plan.inFlightCount).toBe(1);
  });

  test('of more backends than may be in flight the rest waits, longest due first, and none is forgotten', () => {
    const bench = new ProbeBench(2);
    const backends = [1, 2, 3, 4, 5].map(backend);
    bench.configure([cluster({}, { backends })]);
    expect(bench.started).toHaveLength(2);
    expect(bench.plan.waitingCount).toBe(3);
    bench.answer('ok', 2);
    expect(bench.started.map(({ target }) => target)).toEqual([1, 2, 3].map(backend));
    bench.wake();
    expect(bench.started.map(({ target }) => target)).toEqual(backends);
    expect(bench.plan.inFlightCount).toBe(2);
    expect(bench.plan.waitingCount).toBe(0);
  });

  test('unless told otherwise 256 probes may be in flight', () => {
    const bench = new ProbeBench();
    bench.configure([
      cluster({}, { backends: Array.from({ length: 300 }, (_, at) => backend(at)) }),
    ]);
    expect(bench.plan.inFlightCount).toBe(PROBES_IN_FLIGHT_MAX);
    expect([PROBES_IN_FLIGHT_MAX, bench.plan.waitingCount]).toEqual([256, 44]);
  });

  test('an early wake-up does nothing', () => {
    const bench = new ProbeBench();
    bench.configure([cluster({})]);
    const wake = bench.plan.nextWake();
    bench.wakeAt(seconds(1));
    expect(bench.kinds()).toEqual(['StartProbe']);
    expect(bench.plan.nextWake()).toEqual(wake);
  });
});

describe('confirm', () => {
  test('a doubted backend is probed now; one whose probe is in flight has its answer coming', () => {
    const bench = new ProbeBench();
    bench.configure([cluster({})]);
    expect(bench.confirm(ONE)).toBe(true);
    expect(bench.started).toHaveLength(1);
    bench.answer('ok');
    expect(bench.confirm(ONE)).toBe(true);
    expect(bench.started).toHaveLength(2);
  });

  test('of one that is not probed nobody will say anything', () => {
    const bench = new ProbeBench();
    bench.configure([cluster({ mode: 'HEALTH_OFF' })]);
    expect(bench.confirm(ONE)).toBe(false);
    expect(bench.confirm(TWO)).toBe(false);
  });

  test('one that waits for room stays in its place', () => {
    const bench = new ProbeBench(1);
    bench.configure([cluster({}, { backends: [ONE, TWO] })]);
    expect(bench.confirm(TWO)).toBe(true);
    expect(bench.plan.waitingCount).toBe(1);
    bench.answer('ok', 1);
    expect(bench.started.map(({ target }) => target)).toEqual([ONE, TWO]);
  });
});

test('time that goes back, and an input before every output was polled, are bugs of the caller', () => {
  const plan = new ProbePlan(createRandom({ high: 0, low: 1 }));
  plan.configure([cluster({})], instant(5));
  expect(() => plan.handleTimeout(instant(5))).toThrow('every output');
  while (plan.pollOutput() !== undefined);
  expect(() => plan.handleTimeout(instant(4))).toThrow('time does not go back');
});
