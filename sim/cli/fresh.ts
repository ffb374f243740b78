/** Runs one seed in a process of its own and prints the digest of every step or action: what determinism.ts compares with. */
import { scenarioNamed, worldNamed } from '../../scenarios/index.ts';
import { parseSeed, type Seed } from '../index.ts';
import { stepDigests } from './determinism.ts';
import { worldDigests } from './world-determinism.ts';

// An interrupt of the terminal reaches this process too; whoever started it decides when to stop.
process.on('SIGINT', () => undefined);

const [name = '', seedText = '', steps = ''] = process.argv.slice(2);
const parsed = parseSeed(seedText);
const seed = parsed.ok ? parsed.seed : undefined;
const digests = seed && (await digestsOf(seed));
if (digests === undefined) throw new Error('usage: fresh SCENARIO SEED [STEPS]');
process.stdout.write(`${digests.join('\n')}\n`);

async function digestsOf(given: Seed): Promise<readonly string[] | undefined> {
  const world = worldNamed(name);
  if (world !== undefined) return worldDigests(world, given);
  const scenario = scenarioNamed(name);
  return scenario && stepDigests(scenario, given, Number(steps));
}
