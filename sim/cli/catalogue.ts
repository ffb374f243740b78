/** The property catalogue of these very sources, which a sweep is held against. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isWorld, legsOf, type Plan } from './plan.ts';
import {
  readSources,
  scanProperties,
  type PropertyScan,
  type SourceFile,
} from './property-scan.ts';

/**
 * Scans the nearest sources above this file; throws when there are none. Of the properties it has those that the scenarios of
 * a plan can reach: what is declared for worlds is seen in no other run, and nothing else in a world.
 */
export function readCatalogue(plan: Plan): PropertyScan {
  const sources = readAll();
  const { catalogue, problems } = scanProperties(sources);
  const kinds = new Set(legsOf(plan).map(({ scenario }) => isWorld(scenario)));
  const ofWorlds = new Set(sources.filter(isOfWorlds).map(({ path }) => path));
  return { catalogue: catalogue.filter(({ path }) => kinds.has(ofWorlds.has(path))), problems };
}

function readAll(): SourceFile[] {
  for (let folder = import.meta.dirname; folder !== dirname(folder); folder = dirname(folder)) {
    if (!existsSync(join(folder, 'sim/properties.ts'))) continue;
    return readSources(folder, ['sim', 'scenarios']);
  }
  throw new Error('no sources here: run the simulator in a checkout of the project');
}

/** What the worlds are made of, and the scenarios that raise one. */
function isOfWorlds({ path, text }: SourceFile): boolean {
  if (/^(?:sim|scenarios)\/world\//.test(path)) return true;
  return path.startsWith('scenarios/') && /^ {2}kind: 'world',$/m.test(text);
}
