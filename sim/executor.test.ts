import { setTimeout as realTimer } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { present } from '../core/assert.ts';
import { instant, microseconds, milliseconds, seconds } from '../core/time.ts';
import { VirtualClock } from './clock.ts';
import { EventQueue } from './event-queue.ts';
import { RunFailure, runTasks } from './executor.ts';
import type { Context, RunOptions, TaskBody } from './executor.ts';
import { seededStreams } from './random.ts';
import { printSeed, seedFromNumber } from './seed.ts';

describe('order', () => {
  test('two tasks racing over one variable lose updates on some seeds and not on others', async () => {
    const outcomes = new Set<number>();
    for (let seed = 0; seed < 100; seed++) outcomes.add(await run(seed, racyCounter));
    expect(outcomes.size).toBeGreaterThan(1);
    expect(outcomes).toContain(2);
  });

  test('three tasks of three steps show many orders, and one seed always the same', async () => {
    const orders = new Set<string>();
    for (let seed = 0; seed < 500; seed++) {
      const order = await run(seed, threeByThree);
      expect(await run(seed, threeByThree)).toBe(order);
      orders.add(order);
    }
    expect(orders.size).toBeGreaterThan(300);
  });

  test('two runs under way at once do not disturb each other', async () => {
    const alone = [await run(1, threeByThree), await run(2, threeByThree)];
    expect(await Promise.all([run(1, threeByThree), run(2, threeByThree)])).toEqual(alone);
  });

  test('one task runs at a time, through all its awaits of plain promises', async () => {
    let inside = 0;
    await run(5, async (context) => {
      const critical = async (): Promise<void> => {
        for (let round = 0; round < 20; round++) {
          expect(++inside).toBe(1);
          await hops(50);
          inside--;
          await context.sleep(milliseconds(0));
        }
      };
      await joinAll(context, ['a', 'b', 'c'], critical);
    });
    expect(inside).toBe(0);
  });

  test('how many microtasks a task takes changes nothing of the order', async () => {
    for (let seed = 0; seed < 20; seed++) {
      expect(await run(seed, logged(40))).toBe(await run(seed, logged(0)));
    }
  });

  test('an added wait of one task leaves the draws of the other streams alone', async () => {
    const streams = seededStreams(seedFromNumber(3));
    await runTasks({ seed: seedFromNumber(3), sched: streams.sched }, threeByThree);
    const untouched = seededStreams(seedFromNumber(3)).workload;
    expect(streams.workload.choose('next', 2 ** 32)).toBe(untouched.choose('next', 2 ** 32));
  });
});

describe('time', () => {
  test('sleeping takes virtual time only, and wakes by deadline', async () => {
    const woken: string[] = [];
    const clock = new VirtualClock(instant(1_000));
    await run(
      1,
      async (context) => {
        const sleeper = (name: string, count: number) =>
          context.spawn(name, async () => {
            await context.sleep(seconds(count));
            woken.push(`${name}@${context.now()}`);
          });
        const sleepers = [sleeper('late', 30), sleeper('early', 10), sleeper('middle', 20)];
        for (const task of sleepers) await task.join();
      },
      { clock },
    );
    expect(woken).toEqual(['early@10001000', 'middle@20001000', 'late@30001000']);
    expect(clock.now()).toBe(30_001_000);
  });

  test('a sleep that was made earlier is due when it was made to be', async () => {
    const end = await run(2, async (context) => {
      const timeout = context.sleep(milliseconds(5));
      await context.sleep(milliseconds(3));
      await timeout;
      const passed = context.sleep(milliseconds(1));
      await context.sleep(milliseconds(2));
      await passed;
      return context.now();
    });
    expect(end).toBe(7_000);
  });

  test('a task may wait for several things at once', async () => {
    const log = await run(3, async (context) => {
      const first = await Promise.race([
        context.sleep(milliseconds(9)).then(() => 'slow'),
        context.sleep(milliseconds(1)).then(() => 'fast'),
      ]);
      const raced = context.now();
      await Promise.all([context.sleep(milliseconds(20)), context.sleep(milliseconds(30))]);
      return [first, raced, context.now()];
    });
    expect(log).toEqual(['fast', 1_000, 31_000]);
  });

  test('branches within one task keep to it, though other tasks are ready', async () => {
    const order = await run(4, async (context) => {
      const log: string[] = [];
      const branch = async (name: string, count: number): Promise<void> => {
        await hops(count);
        for (let round = 0; round < 3; round++) {
          await context.sleep(milliseconds(1));
          log.push(name);
        }
      };
      const other = context.spawn('other', () => branch('other', 0));
      await Promise.all([branch('near', 0), branch('far', 5)]);
      other.cancel();
      return log;
    });
    expect(order.filter((name) => name === 'near')).toHaveLength(3);
    expect(order.filter((name) => name === 'far')).toHaveLength(3);
  });
});

describe('failures', () => {
  test('a task that awaits a real timer fails the run with its name and the seed', async () => {
    let after = 'not reached';
    const failure = await failureOf(0xbeef, async (context) => {
      const leaky = context.spawn('leaky', async () => {
        await realTimer(5);
        after = 'woken';
        await context.sleep(milliseconds(1));
        after = 'resumed';
      });
      await leaky.join();
    });
    expect(failure).toMatchObject({ kind: 'outside', tasks: ['leaky'] });
    expect(failure.message).toContain('leaky');
    expect(failure.message).toContain('0xbeef');
    await realTimer(20);
    expect(after).toBe('woken');
  });

  test('a promise that another task resolves is outside as well', async () => {
    const failure = await failureOf(1, async (context) => {
      const { promise, resolve } = withResolvers();
      context.spawn('giver', async () => {
        await context.sleep(milliseconds(1));
        resolve();
      });
      await context.spawn('taker', () => promise).join();
    });
    expect(failure).toMatchObject({ kind: 'outside', tasks: ['taker'] });
  });

  test('main is a task like any other', async () => {
    const failure = await failureOf(1, () => realTimer(1));
    expect(failure).toMatchObject({ kind: 'outside', tasks: ['main'] });
  });

  test('a deadlock fails with every task and what it waits for', async () => {
    const failure = await failureOf(7, async (context) => {
      const channel = context.channel<number>('replies');
      const stuck = context.spawn('stuck', async () => channel.receive());
      await stuck.join();
    });
    expect(failure).toMatchObject({ kind: 'deadlock', tasks: ['main', 'stuck'] });
    expect(failure.message).toBe(
      'deadlock: no task can run; main: join stuck; stuck: channel replies (seed 0x7)',
    );
  });

  test('a livelock fails at the bound of steps, with or without virtual time going by', async () => {
    for (const pause of [milliseconds(0), milliseconds(1)]) {
      const spinning: TaskBody<void> = async (context) => {
        const spin = context.spawn('spin', async () => {
          for (;;) await context.sleep(pause);
        });
        await spin.join();
      };
      const failure = await failureOf(8, spinning, { stepsMax: 500 });
      expect(failure).toMatchObject({ kind: 'livelock', tasks: ['main', 'spin'] });
      expect(failure.message).toContain('no end after 500 steps');
      expect(failure.message).toContain('0x8');
    }
  });

  test('an error in a task carries its name, the seed and the error itself', async () => {
    const cause = new TypeError('broken');
    const failure = await failureOf(9, async (context) => {
      context.spawn('broken', async () => {
        await context.sleep(milliseconds(1));
        throw cause;
      });
      await context.sleep(seconds(1));
    });
    expect(failure).toMatchObject({ kind: 'error', tasks: ['broken'], cause });
    expect(failure.message).toBe('error: task broken threw TypeError: broken (seed 0x9)');
  });

  test('an error before the first await is no different', async () => {
    const failure = await failureOf(9, () => {
      throw new Error('at once');
    });
    expect(failure).toMatchObject({ kind: 'error', tasks: ['main'] });
  });

  test('a context kept beyond the run refuses to be used', async () => {
    const kept = await run(1, async (context) => context);
    expect(() => kept.sleep(seconds(1))).toThrow('outside a running task');
    expect(() => kept.spawn('late', async () => {})).toThrow('outside a running task');
  });

  test('after a failure the other tasks are dropped', async () => {
    let resumed = false;
    await failureOf(1, async (context) => {
      context.spawn('bystander', async () => {
        await context.sleep(milliseconds(5));
        resumed = true;
      });
      await context.sleep(milliseconds(1));
      throw new Error('stop');
    });
    await realTimer(1);
    expect(resumed).toBe(false);
  });
});

function run<T>(seed: number, main: TaskBody<T>, more: Partial<RunOptions> = {}): Promise<T> {
  const { sched } = seededStreams(seedFromNumber(seed));
  return runTasks({ seed: seedFromNumber(seed), sched, ...more }, main);
}

async function failureOf(
  seed: number,
  main: TaskBody<unknown>,
  more: Partial<RunOptions> = {},
): Promise<RunFailure> {
  const outcome: unknown = await run(seed, main, more).catch((error: unknown) => error);
  if (!(outcome instanceof RunFailure)) throw new Error(`no failure but ${String(outcome)}`);
  expect(printSeed(outcome.seed)).toBe(`0x${seed.toString(16)}`);
  return outcome;
}

async function joinAll(
  context: Context,
  names: readonly string[],
  body: TaskBody<void>,
): Promise<void> {
  const tasks = names.map((name) => context.spawn(name, body));
  for (const task of tasks) await task.join();
}

async function racyCounter(context: Context): Promise<number> {
  let counter = 0;
  await joinAll(context, ['one', 'two'], async () => {
    const read = counter;
    await context.sleep(milliseconds(0));
    counter = read + 1;
  });
  return counter;
}

function threeByThree(context: Context): Promise<string> {
  return logged(0)(context);
}

/** Three tasks of three steps, each step a number of microtasks long. */
function logged(microtasks: number): TaskBody<string> {
  return async (context) => {
    let log = '';
    const worker = (name: string) => async (): Promise<void> => {
      for (let step = 0; step < 3; step++) {
        log += name;
        await hops(microtasks);
        await context.sleep(milliseconds(0));
      }
    };
    const tasks = ['a', 'b', 'c'].map((name) => context.spawn(name, worker(name)));
    for (const task of tasks) await task.join();
    return log;
  };
}

async function hops(count: number): Promise<void> {
  for (let hop = 0; hop < count; hop++) await Promise.resolve();
}

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((settle) => (resolve = settle));
  return { promise, resolve };
}

describe('surroundings', () => {
  test('pass while tasks sleep, in the order of time, and tasks come first at one instant', async () => {
    const clock = new VirtualClock();
    const streams = seededStreams(seedFromNumber(1));
    const events = new EventQueue<() => void>(streams.sched.fork('events'));
    const seen: string[] = [];
    for (const at of [10, 20, 30]) {
      events.push(instant(at), () => seen.push(`event ${at} at ${clock.now()}`));
    }
    const surroundings = {
      nextAt: () => events.nextAt(),
      step: () => {
        const event = present(events.pop(), 'asked for only when there is one');
        clock.advanceTo(event.at);
        event.value();
      },
    };
    const options = { seed: seedFromNumber(1), sched: streams.sched, clock, surroundings };
    await runTasks(options, async (context) => {
      await context.sleep(microseconds(20));
      seen.push(`task at ${context.now()}`);
      await context.sleep(microseconds(5));
      seen.push(`task at ${context.now()}`);
    });
    expect(seen).toEqual(['event 10 at 10', 'task at 20', 'event 20 at 20', 'task at 25']);
  });
});
