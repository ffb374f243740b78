/** Runs one seed in a process of its own and prints the digest of every step: what determinism.ts compares with. */
import { scenarioNamed } from '../../scenarios/index.ts';
import { parseSeed } from '../index.ts';
import { stepDigests } from './determinism.ts';

// An interrupt of the terminal reaches this process too; whoever started it decides when to stop.
process.on('SIGINT', () => undefined);

const [name = '', seedText = '', steps = ''] = process.argv.slice(2);
const scenario = scenarioNamed(name);
const parsed = parseSeed(seedText);
if (scenario === undefined || !parsed.ok || parsed.seed === undefined) {
  throw new Error('usage: fresh SCENARIO SEED STEPS');
}
process.stdout.write(`${stepDigests(scenario, parsed.seed, Number(steps)).join('\n')}\n`);
