import { describe, expect, test } from 'vitest';
import { after, instant, microseconds, milliseconds, seconds } from '../../core/time.ts';
import { bytes, FRONT, LOCAL, UPSTREAM } from '../../test/driver-bench.ts';
import type { HostShape, OsFaults } from './os-faults.ts';
import { OsBench } from './os-world.laws.ts';

describe('the timer', () => {
  test('fires at its time, to the microsecond, when nothing is wrong', () => {
    expect(firingTimes({}, [1, 1_001, 250_000])).toEqual([1, 1_001, 250_000]);
  });

  test('fires early and late within what the fault allows, and reaches both ends', () => {
    const timer = { early: microseconds(3), late: microseconds(4), tick: microseconds(0) };
    const asked = Array.from({ length: 200 }, (_, n) => (n + 1) * 100);
    const errors = firingTimes({ timer }, asked).map((at, n) => at - (asked[n] ?? 0));
    expect([...new Set(errors)].sort((one, other) => one - other)).toEqual([
      -3, -2, -1, 0, 1, 2, 3, 4,
    ]);
  });

  test('however early it may be, half of the wait passes', () => {
    const timer = { early: microseconds(1_000), late: microseconds(0), tick: microseconds(0) };
    const asked = Array.from({ length: 200 }, () => 10);
    const times = firingTimes({ timer }, asked).sort((one, other) => one - other);
    expect([times[0], times.at(-1)]).toEqual([5, 10]);
  });

  test('waits for the next tick, together with others', () => {
    const timer = { early: microseconds(0), late: microseconds(0), tick: milliseconds(10) };
    expect(firingTimes({ timer }, [1_000, 10_001, 30_000])).toEqual([10_000, 20_000, 30_000]);
  });

  test('is forgotten when it is disarmed after it was due, before the process could run', () => {
    const bench = benchOf();
    bench.fault({ standstill: 'process' });
    bench.os.wakeAt(after(bench.os.now(), microseconds(5)));
    bench.run(milliseconds(1));
    bench.os.wakeAt(undefined);
    bench.fault({ standstill: undefined });
    bench.run(seconds(1));
    expect(bench.heard.log).toEqual([]);
  });

  test('shares a turn with what has arrived by then, and comes before it or after it if not', () => {
    const logs = new Set<string>();
    for (let seed = 0; seed < 30; seed++) {
      const bench = benchOf({}, seed);
      const front = bench.heard.listen(FRONT, LOCAL);
      bench.os.wakeAt(instant(5));
      bench.host.later(microseconds(5), () => bench.program(LOCAL).send(front, bytes(1)));
      bench.run(microseconds(5));
      logs.add(bench.heard.log.map(({ kind }) => kind).join());
    }
    expect([...logs].sort()).toEqual([
      'client,endTurn,timer,endTurn',
      'timer,client,endTurn',
      'timer,endTurn,client,endTurn',
    ]);
  });
});

describe('a process', () => {
  test('runs as late as the fault allows, and hears in one turn what came meanwhile', () => {
    const latest = microseconds(50);
    const times = new Set<number>();
    for (let seed = 0; seed < 50; seed++) {
      const bench = benchOf({}, seed);
      const { heard } = bench;
      const front = heard.listen(FRONT, LOCAL);
      bench.fault({ wakeLatency: latest });
      bench.program(LOCAL).send(front, bytes(1));
      let waited = 0;
      for (; heard.log.length === 0; waited += 1) {
        bench.run(microseconds(waited === 0 ? 0 : 1));
      }
      times.add(waited - 1);
    }
    expect(Math.max(...times)).toBeGreaterThan(30);
    expect(Math.max(...times)).toBeLessThanOrEqual(latest);
    expect(Math.min(...times)).toBeLessThan(20);
  });

  test('that stands still hears nothing while time goes on, and then all at once what its buffers held', () => {
    const bench = benchOf();
    const front = bench.heard.listen(FRONT, LOCAL);
    bench.fault({ standstill: 'process', receiveBuffer: 2 * 512 });
    bench.os.wakeAt(after(bench.os.now(), seconds(1)));
    for (const n of [1, 2, 3]) bench.program(LOCAL).send(front, bytes(n));
    bench.run(seconds(5));
    expect([bench.heard.log, bench.os.now()]).toEqual([[], 5_000_000]);
    bench.fault({ standstill: undefined });
    bench.run(microseconds(0));
    expect(bench.heard.of('client').map(({ payload }) => payload.length)).toEqual([1, 2]);
    expect(bench.heard.of('timer')).toHaveLength(1);
    expect(bench.kernel.in.overflowed).toBe(1);
  });

  test('whose machine sleeps misses what is sent to it, and its clock and timer stand still', () => {
    const bench = benchOf({ origin: instant(7_000_000) });
    const front = bench.heard.listen(FRONT, LOCAL);
    bench.os.wakeAt(instant(8_000_000));
    bench.run(milliseconds(400));
    bench.fault({ standstill: 'clock' });
    bench.program(LOCAL).send(front, bytes(1));
    bench.run(seconds(100));
    expect(bench.os.now()).toBe(7_400_000);
    bench.fault({ standstill: undefined });
    bench.run(microseconds(599_999));
    expect([bench.heard.log, bench.os.now()]).toEqual([[], 7_999_999]);
    bench.run(microseconds(1));
    expect(bench.heard.log.map(({ kind }) => kind)).toEqual(['timer', 'endTurn']);
    expect(bench.kernel.in).toMatchObject({ received: 1, unheard: 1 });
  });

  test('that was killed while it stood still hears nothing when it would have gone on', () => {
    const bench = benchOf();
    const front = bench.heard.listen(FRONT, LOCAL);
    bench.fault({ standstill: 'process' });
    bench.program(LOCAL).send(front, bytes(1));
    bench.os.wakeAt(after(bench.os.now(), seconds(1)));
    bench.run(seconds(5));
    bench.os.kill();
    bench.fault({ standstill: undefined });
    bench.run(seconds(5));
    expect([bench.heard.log, bench.os.turns]).toEqual([[], 0]);
  });

  test('hears no refusal while its machine sleeps', async () => {
    const bench = benchOf();
    const { backend } = bench.heard.pair();
    backend.close();
    await bench.heard.turn((ports) => {
      ports.sendToBackend(UPSTREAM, undefined, bytes(1));
      bench.fault({ standstill: 'clock' });
    });
    bench.fault({ standstill: undefined });
    bench.run(seconds(1));
    expect(bench.heard.of('refused')).toEqual([]);
  });
});

function benchOf(shape: Partial<HostShape> = {}, seed = 1): OsBench {
  return new OsBench({ shape, seed });
}

/** When a timer fires that is set for each of these times, in microseconds: each on a host of its own, from zero on. */
function firingTimes(faults: Partial<OsFaults>, asked: readonly number[]): number[] {
  return asked.flatMap((at, seed) => {
    const bench = benchOf({}, seed);
    const fired: number[] = [];
    bench.heard.timer = () => fired.push(bench.os.now());
    bench.fault(faults);
    bench.os.wakeAt(instant(at));
    bench.run(seconds(1));
    return fired;
  });
}
