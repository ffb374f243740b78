/** How fast the simulator steps: processor time of one core, every check on, as `npm run sim` runs it. */
import { SCENARIOS } from '../../scenarios/index.ts';
import { Observer, runSeed, seedFromNumber } from '../../sim/index.ts';
import { quartiles, type Quartiles } from './statistics.ts';

export interface SimulatorFigure {
  readonly scenario: string;
  /** Steps per second of processor time, over the slices. */
  readonly stepsPerSecond: Quartiles;
}

export interface SimulatorOptions {
  readonly slices: number;
  readonly seedsPerSlice: number;
  readonly steps: number;
  readonly progress: (text: string) => void;
}

/** The scenarios of a plain sweep, one after the other; seeds that no slice shares. */
export function measureSimulator(options: SimulatorOptions): SimulatorFigure[] {
  return SCENARIOS.filter(({ share }) => share > 0).map((scenario) => {
    const observer = new Observer();
    const samples: number[] = [];
    // The first slice warms the compiler up and does not count.
    for (let slice = 0; slice <= options.slices; slice += 1) {
      options.progress(`${scenario.name}: slice ${slice} of ${options.slices}`);
      const begun = process.cpuUsage();
      for (let seed = 0; seed < options.seedsPerSlice; seed += 1) {
        const number = slice * options.seedsPerSlice + seed;
        runSeed(scenario, seedFromNumber(number), options.steps, { observer });
      }
      const { user, system } = process.cpuUsage(begun);
      if (slice > 0) samples.push((options.seedsPerSlice * options.steps * 1e6) / (user + system));
    }
    return { scenario: scenario.name, stepsPerSecond: quartiles(samples) };
  });
}
