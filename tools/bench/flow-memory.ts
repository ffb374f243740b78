/**
 * What a live flow takes in memory, its socket's objects included: a data plane on the mmsg driver in a loop like that of a
 * worker, whose heap is asked for when it has some flows and when it has many. Prints "listening", then "counted FLOWS" for
 * the former, and at last HEAP TABLE, in bytes: what was taken for each flow that came after, and its place in the tables,
 * which were laid out before any came.
 *
 * Usage: node --expose-gc flow-memory.js CONFIG FEW MANY
 */
import { ControlPlane, ControlPump, DataPlane, PLACEMENT_SEED, Pump } from '../../core/index.ts';
import { readEnvironment } from '../../shell/config/environment.ts';
import { loadConfig } from '../../shell/config/load.ts';
import { loadLibc } from '../../shell/drivers/libc.ts';
import { MmsgDriver } from '../../shell/drivers/mmsg.ts';

const [file = '', fewText, manyText] = process.argv.slice(2);
const [few, many] = [Number(fewText), Number(manyText)];
const { config } = loadConfig(file, readEnvironment());
const libc = loadLibc();
if (typeof libc === 'string') throw new Error(libc);
if (config === undefined) throw new Error(`${file} has errors`);

const PATIENCE_MS = 100;
const randomSeed = { high: 1, low: 2 };
const tableSeed = { first: 3, second: 4 };
const plane = new DataPlane({ placementSeed: PLACEMENT_SEED, tableSeed, randomSeed });
const driver = new MmsgDriver(libc);
const pump = new Pump(plane, driver, (report) => controlPump.report(report));
const controlPump = new ControlPump(
  new ControlPlane({ randomSeed }),
  {
    now: () => driver.now(),
    probe: () => undefined,
    cancelProbe: () => undefined,
    wakeAt: () => undefined,
    event: () => undefined,
  },
  pump,
);
driver.attach(pump);

const empty = collected();
controlPump.configure(config);
const table = (collected().arrayBuffers - empty.arrayBuffers) / many;
process.stdout.write('listening\n');
const before = runUntil(few);
process.stdout.write(`counted ${few}\n`);
const after = runUntil(many);
const heap = (after.heapUsed + after.external - before.heapUsed - before.external) / (many - few);
process.stdout.write(`${heap} ${table}\n`);
process.exit();

function runUntil(flows: number): NodeJS.MemoryUsage {
  while (plane.flowCount < flows) driver.turn(PATIENCE_MS);
  return collected();
}

/** More than once: what a finalizer lets go is free only after the next. */
function collected(): NodeJS.MemoryUsage {
  if (globalThis.gc === undefined) throw new Error('start with node --expose-gc');
  for (let times = 0; times < 3; times += 1) globalThis.gc();
  return process.memoryUsage();
}
