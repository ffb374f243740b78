/** The laws of every driver, asked of the simulated operating system: what a real kernel does on loopback, it does too. */
import { bufferLaws } from '../../core/ports-buffer.laws.ts';
import { driverLaws } from '../../core/ports.laws.ts';
import { microseconds, milliseconds } from '../../core/time.ts';
import { worldOf } from './os-world.laws.ts';
import { PlainWorld } from './plain-world.ts';

driverLaws('simulated', async (arrivals) => worldOf(new PlainWorld(), arrivals));
bufferLaws('simulated', async (arrivals) => worldOf(new PlainWorld(), arrivals));

driverLaws('simulated, with sends that do not collect', async (arrivals) =>
  worldOf(new PlainWorld({ shape: { batch: 1, localAddress: false } }), arrivals),
);

driverLaws('simulated, with batches of three', async (arrivals) =>
  worldOf(new PlainWorld({ seed: 2, shape: { batch: 3 } }), arrivals),
);

driverLaws('simulated, where process, polls and timers are late', async (arrivals) => {
  const world = new PlainWorld({ seed: 3 });
  world.fault({
    wakeLatency: microseconds(300),
    refusalDelay: milliseconds(2),
    timer: { early: milliseconds(1), late: milliseconds(2), tick: milliseconds(1) },
  });
  return worldOf(world, arrivals);
});
