/** The property catalogue of these very sources, which a sweep is held against. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readSources, scanProperties, type PropertyScan } from './property-scan.ts';

/** Scans the nearest sources above this file; throws when there are none. */
export function readCatalogue(): PropertyScan {
  for (let folder = import.meta.dirname; folder !== dirname(folder); folder = dirname(folder)) {
    if (!existsSync(join(folder, 'sim/properties.ts'))) continue;
    return scanProperties(readSources(folder, ['sim', 'scenarios']));
  }
  throw new Error('no sources here: run the simulator in a checkout of the project');
}
