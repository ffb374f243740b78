/** The simulated operating system as the bench of the drivers' laws sees it: time moves when a law waits. */
import type { Arrivals } from '../../core/ports.ts';
import { milliseconds } from '../../core/time.ts';
import { DriverBench, type World } from '../../test/driver-bench.ts';
import { PlainWorld, type PlainOptions } from './plain-world.ts';

/** A world, and a bench that hears its host and ends its turns. */
export class OsBench extends PlainWorld {
  readonly heard: DriverBench = new DriverBench();

  constructor(options?: PlainOptions) {
    super(options);
    this.heard.reset(worldOf(this, this.heard));
  }
}

/** A millisecond is enough for whatever is on its way in `world`. */
export function worldOf(world: PlainWorld, arrivals: Arrivals): World {
  const { os, kernel } = world;
  os.attach(arrivals);
  return {
    ports: os,
    portOf: (listener) => os.portOf(listener),
    socketCount: () => os.socketCount,
    need: () => undefined,
    peer: (at) => world.program(at),
    endOfTurn: async () => undefined,
    settle: async () => world.run(milliseconds(1)),
    setRoom: (count) => world.setRoom(count),
    pass: async (duration) => world.run(duration),
    withoutDescriptors: async (run) => {
      world.fault({ descriptors: kernel.descriptors.count });
      run();
      world.fault({ descriptors: undefined });
    },
    dispose: async () => undefined,
  };
}
