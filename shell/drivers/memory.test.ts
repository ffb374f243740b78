import { setImmediate } from 'node:timers/promises';
import type { Arrivals } from '../../core/index.ts';
import { driverLaws } from '../../core/ports.laws.ts';
import type { World } from '../../test/driver-bench.ts';
import { MemoryDriver } from './memory.ts';

driverLaws('memory', async (arrivals) => worldOf(new MemoryDriver(), arrivals));
driverLaws('memory, with batches of three', async (arrivals) =>
  worldOf(new MemoryDriver({ batch: 3 }), arrivals),
);

function worldOf(driver: MemoryDriver, arrivals: Arrivals): World {
  driver.attach(arrivals);
  return {
    ports: driver,
    portOf: (listener) => driver.portOf(listener),
    socketCount: () => driver.socketCount,
    peer: (at) => driver.peer(at),
    endOfTurn: async () => setImmediate(),
    settle: async () => {
      while (driver.deliver());
    },
    pass: async (duration) => driver.pass(duration),
    withoutDescriptors: async (run) => {
      const { descriptorsMax } = driver;
      driver.descriptorsMax = driver.socketCount;
      run();
      driver.descriptorsMax = descriptorsMax;
    },
    dispose: async () => undefined,
  };
}
