import { setTimeout as realTimer } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { milliseconds, seconds } from '../core/time.ts';
import { VirtualClock } from './clock.ts';
import { runTasks } from './executor.ts';
import type { TaskBody } from './executor.ts';
import { seededStreams } from './random.ts';
import { seedFromNumber } from './seed.ts';
import type { Task } from './task.ts';

describe('meeting', () => {
  test('join gives the result, before the end and after it', async () => {
    const results = await run(1, async (context) => {
      const task = context.spawn('answer', async () => {
        await context.sleep(milliseconds(1));
        return 42;
      });
      return [await task.join(), await task.join()];
    });
    expect(results).toEqual([42, 42]);
  });

  test('a gate holds everybody until it is opened, and nobody after', async () => {
    const passed = await run(1, async (context) => {
      const gate = context.gate('start');
      const log: string[] = [];
      const waiters = ['a', 'b'].map((name) =>
        context.spawn(name, async () => {
          await gate.pass();
          log.push(`${name}@${context.now()}`);
        }),
      );
      await context.sleep(milliseconds(2));
      expect(log).toEqual([]);
      gate.open();
      for (const waiter of waiters) await waiter.join();
      await gate.pass();
      return log.sort();
    });
    expect(passed).toEqual(['a@2000', 'b@2000']);
  });

  test('a channel keeps the order of its messages, and undefined is one', async () => {
    const received = await run(1, async (context) => {
      const channel = context.channel<number | undefined>('numbers');
      const receiver = context.spawn('receiver', async () => {
        const log = [];
        for (let count = 0; count < 4; count++) log.push(await channel.receive());
        return log;
      });
      channel.send(1);
      channel.send(undefined);
      await context.sleep(milliseconds(1));
      channel.send(3);
      channel.send(4);
      return receiver.join();
    });
    expect(received).toEqual([1, undefined, 3, 4]);
  });

  test('which of two waiting receivers gets a message is drawn', async () => {
    const winners = new Set<string>();
    for (let seed = 0; seed < 30; seed++) {
      const winner = await run(seed, async (context) => {
        const channel = context.channel<string>('work');
        let first = 'nobody';
        for (const name of ['a', 'b']) {
          context.spawn(name, async () => {
            await channel.receive();
            first = name;
          });
          await context.sleep(milliseconds(1));
        }
        channel.send('job');
        await context.sleep(milliseconds(1));
        return first;
      });
      winners.add(winner);
    }
    expect(winners).toEqual(new Set(['a', 'b']));
  });
});

describe('cancellation', () => {
  test('a cancelled task is never resumed, whatever it waits for', async () => {
    const log: string[] = [];
    const end = await run(1, async (context) => {
      const gate = context.gate('closed');
      const channel = context.channel<number>('quiet');
      const bodies: Record<string, () => PromiseLike<unknown>> = {
        sleep: () => context.sleep(seconds(60)),
        gate: () => gate.pass(),
        channel: () => channel.receive(),
      };
      for (const [name, wait] of Object.entries(bodies)) {
        const task = context.spawn(name, async () => {
          try {
            await wait();
          } finally {
            log.push(name);
          }
        });
        await context.sleep(milliseconds(1));
        task.cancel();
        task.cancel();
      }
      gate.open();
      channel.send(7);
      expect(await channel.receive()).toBe(7);
      await context.sleep(seconds(120));
      return context.now();
    });
    expect(log).toEqual([]);
    expect(end).toBe(120_003_000);
  });

  test('a task that is cancelled before its first turn never starts', async () => {
    let started = false;
    await run(1, async (context) => {
      context
        .spawn('unborn', async () => {
          started = true;
        })
        .cancel();
      await context.sleep(seconds(1));
    });
    expect(started).toBe(false);
  });

  test('whoever joins a cancelled task is told, whether it waits already or comes later', async () => {
    await run(1, async (context) => {
      const victim = context.spawn('victim', () => Promise.resolve(context.gate('never').pass()));
      const joiner = context.spawn('joiner', async () => {
        await expect(Promise.resolve(victim.join())).rejects.toThrow('victim was cancelled');
      });
      await context.sleep(milliseconds(1));
      victim.cancel();
      await joiner.join();
      await expect(Promise.resolve(victim.join())).rejects.toThrow('victim was cancelled');
    });
  });

  test('a task that cancels itself runs on to its next wait, and no further', async () => {
    const log: string[] = [];
    await run(1, async (context) => {
      const task: { cancel: () => void } = context.spawn('suicide', async () => {
        task.cancel();
        log.push('still here');
        await context.sleep(milliseconds(1));
        log.push('gone');
      });
      await context.sleep(seconds(1));
    });
    expect(log).toEqual(['still here']);
  });

  test('what a task throws after cancelling itself concerns nobody', async () => {
    const result = await run(1, async (context) => {
      const task: { cancel: () => void } = context.spawn('suicide', async () => {
        task.cancel();
        throw new Error('too late');
      });
      await context.sleep(seconds(1));
      return 'fine';
    });
    expect(result).toBe('fine');
  });

  test('a wait that a task left behind when it ended holds nothing up', async () => {
    const clock = new VirtualClock();
    const stuck = run(
      1,
      async (context) => {
        const racer = context.spawn('racer', () =>
          Promise.race([context.sleep(milliseconds(1)), context.sleep(seconds(60))]),
        );
        await racer.join();
        await context.gate('never').pass();
      },
      clock,
    );
    await expect(stuck).rejects.toThrow('deadlock');
    expect(clock.now()).toBe(1_000);
  });

  test('no task survives the run: what still waits is killed when main ends', async () => {
    const log: string[] = [];
    const tasks: Task<void>[] = [];
    await run(1, async (context) => {
      for (const name of ['a', 'b']) {
        const task = context.spawn(name, async () => {
          log.push(`${name} starts`);
          try {
            for (;;) await context.sleep(milliseconds(10));
          } finally {
            log.push(`${name} resumed after the run`);
          }
        });
        tasks.push(task);
      }
      await context.sleep(milliseconds(35));
    });
    await realTimer(5);
    expect(log.sort()).toEqual(['a starts', 'b starts']);
    expect(tasks.map(({ alive }) => alive)).toEqual([false, false]);
  });
});

function run<T>(seed: number, main: TaskBody<T>, clock = new VirtualClock()): Promise<T> {
  const { sched } = seededStreams(seedFromNumber(seed));
  return runTasks({ seed: seedFromNumber(seed), sched, clock }, main);
}
