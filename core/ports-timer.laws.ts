/** What every driver must keep about its one timer: never late, perhaps early, and silent once disarmed. */
import { expect, test } from 'vitest';
import { benchFor, type MakeWorld } from '../test/driver-bench.ts';
import { after, milliseconds } from './time.ts';

/** A part of `driverLaws`. */
export function timerLaws(make: MakeWorld): void {
  const bench = benchFor(make);

  test('wakes no later than asked but perhaps before, and always again when asked again', async () => {
    const at = after(bench.world.ports.now(), milliseconds(15));
    for (let fired = 0; bench.world.ports.now() < at; fired += 1) {
      bench.call((ports) => ports.wakeAt(at));
      await bench.world.pass(milliseconds(15));
      await bench.hear('timer', fired + 1);
    }
    expect(bench.of('timer').length).toBeGreaterThan(0);
    await bench.world.settle();
    expect(bench.log.at(-1)).toEqual({ kind: 'endTurn' });
  });

  test('wakes for an earlier time that was asked for last', async () => {
    const start = bench.world.ports.now();
    bench.call((ports) => ports.wakeAt(after(start, milliseconds(60_000))));
    bench.call((ports) => ports.wakeAt(after(start, milliseconds(5))));
    await bench.world.pass(milliseconds(10));
    await bench.hear('timer', 1);
  });

  test('stays silent once disarmed', async () => {
    bench.call((ports) => ports.wakeAt(after(bench.world.ports.now(), milliseconds(5))));
    bench.call((ports) => ports.wakeAt(undefined));
    await bench.world.pass(milliseconds(20));
    await bench.world.settle();
    expect(bench.of('timer')).toEqual([]);
  });

  test('wakes for a time that has passed', async () => {
    bench.call((ports) => ports.wakeAt(ports.now()));
    await bench.world.pass(milliseconds(5));
    await bench.hear('timer', 1);
  });
}
