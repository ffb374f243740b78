/** All parts of a bench, in the order in which they run. */
import { measureBalancing } from './balancing.ts';
import {
  balancingFigures,
  flowListFigures,
  inCoreFigures,
  memoryFigures,
  millionFigures,
  simulatedSoakFigures,
  soakFigures,
} from './bars.ts';
import { measureFlowList } from './flow-list.ts';
import { measureInCore } from './in-core.ts';
import { mmsgIsMissing } from './contenders.ts';
import { measureMemory } from './memory.ts';
import { measureMillion } from './million.ts';
import { PAIRED_PARTS } from './paired-parts.ts';
import type { Context, Outcome, Part } from './part.ts';
import {
  balancingReport,
  flowListReport,
  absentReport,
  inCoreReport,
  memoryReport,
  millionReport,
  simulatedSoakReport,
  simulatorReport,
  snapshotReport,
  soakReport,
} from './report.ts';
import { soakSimulated } from './simulated-soak.ts';
import { measureSimulator } from './simulator.ts';
import { soak } from './soak.ts';
import { measureSnapshots } from './snapshots.ts';

const SIMULATED_MINUTES = 60;

export const PARTS: readonly Part[] = [
  ...PAIRED_PARTS,
  {
    name: 'memory',
    meaning: 'what ten thousand live flows take in memory, over sockets',
    inAll: true,
    run: runMemory,
  },
  {
    name: 'core',
    meaning: 'what the core alone costs, without a socket',
    inAll: true,
    run: runInCore,
  },
  {
    name: 'million',
    meaning: 'a million flows that come and go in the core alone, and the longest pause',
    inAll: true,
    run: runMillion,
  },
  {
    name: 'balancing',
    meaning: 'how long tables and selections take',
    inAll: true,
    run: runBalancing,
  },
  { name: 'sim', meaning: 'how fast the simulator steps', inAll: true, run: runSimulator },
  {
    name: 'flows',
    meaning: 'a list of 10,000 live flows, and what datagrams feel of it',
    inAll: false,
    run: runFlowList,
  },
  {
    name: 'soak',
    meaning: 'the proxy at half load for --minutes: memory, descriptors, every datagram',
    inAll: false,
    run: runSoak,
  },
  {
    name: 'simulated-soak',
    meaning: 'the same in a simulated world, for an hour of its time',
    inAll: false,
    run: runSimulatedSoak,
  },
  // No bar holds them: what they cost is mostly new memory, which a busy machine gives slowly.
  { name: 'snapshot', meaning: 'what snapshots cost', inAll: false, run: runSnapshots },
];

async function runMemory({ placement, progress, print }: Context): Promise<Outcome> {
  const why = mmsgIsMissing();
  if (why !== undefined) {
    const absent = [{ name: 'memory over sockets', why }];
    print(absentReport(absent));
    return { figures: [], data: { absent } };
  }
  const result = await measureMemory(placement, progress);
  print(['', ...memoryReport(result)]);
  return { figures: memoryFigures(result), data: result };
}

function runMillion({ collect, progress, print }: Context): Outcome {
  const result = measureMillion({ collect, progress });
  print(['', ...millionReport(result)]);
  return { figures: millionFigures(result), data: result };
}

async function runSoak({ options, placement, progress, print }: Context): Promise<Outcome> {
  const why = mmsgIsMissing();
  if (why !== undefined) {
    const absent = [{ name: 'soak', why }];
    print(absentReport(absent));
    return { figures: [], data: { absent } };
  }
  const result = await soak({ minutes: options.minutes, placement, progress });
  print(['', ...soakReport(result)]);
  return { figures: soakFigures(result), data: result };
}

function runSimulatedSoak({ collect, progress, print }: Context): Outcome {
  const result = soakSimulated({ minutes: SIMULATED_MINUTES, collect, progress });
  print(['', ...simulatedSoakReport(result)]);
  return { figures: simulatedSoakFigures(result), data: result };
}

function runInCore({ collect, progress, print }: Context): Outcome {
  const result = measureInCore({
    rounds: 15,
    datagrams: 200_000,
    inserts: 1_000_000,
    insertRuns: 8,
    collect,
    progress,
  });
  print(['', ...inCoreReport(result)]);
  return { figures: inCoreFigures(result), data: result };
}

function runBalancing({ progress, print }: Context): Outcome {
  const result = measureBalancing(progress);
  print(['', ...balancingReport(result)]);
  return { figures: balancingFigures(result), data: result };
}

function runSimulator({ options, progress, print }: Context): Outcome {
  const data = measureSimulator({
    slices: options.slices,
    seedsPerSlice: 8,
    steps: 5_000,
    progress,
  });
  print(['', ...simulatorReport(data)]);
  return { figures: [], data };
}

async function runFlowList({ options, placement, progress, print }: Context): Promise<Outcome> {
  const result = await measureFlowList({ rounds: options.slices, placement, progress });
  print(['', ...flowListReport(result)]);
  return { figures: flowListFigures(result), data: result };
}

function runSnapshots({ print }: Context): Outcome {
  const data = measureSnapshots([
    { flows: 10_000, room: 10_000 },
    { flows: 100_000, room: 100_000 },
    { flows: 10_000, room: 1_000_000 },
  ]);
  print(['', ...snapshotReport(data)]);
  return { figures: [], data };
}
