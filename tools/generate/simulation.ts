/** Writes what doc/SIMULATION.md shows of worlds: the table of their scenarios, and the scenario to copy. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { WORLD_SCENARIOS } from '../../scenarios/index.ts';
import { alignTable } from '../../shell/config/markdown-table.ts';

/** The document with these parts as the code has them now. Throws on a missing marker. */
export function simulationDocument(current: string): string {
  return [...parts()].reduce((document, [name, body]) => {
    const part = new RegExp(`<!-- ${name} -->[^]*?<!-- end -->`);
    if (!part.test(document)) throw new Error(`missing marker: ${name}`);
    return document.replace(part, () => `<!-- ${name} -->\n\n${body}\n\n<!-- end -->`);
  }, current);
}

function parts(): ReadonlyMap<string, string> {
  return new Map([
    ['world scenarios', scenarioTable()],
    ['own scenario', `\`\`\`ts\n${readScenario('game-night')}\`\`\``],
  ]);
}

function scenarioTable(): string {
  const rows = WORLD_SCENARIOS.map(({ name, purpose }) => [`\`${name}\``, purpose]);
  return alignTable([['scenario', 'what it is for'], ...rows]);
}

function readScenario(name: string): string {
  return readFileSync(join('scenarios/world', `${name}.ts`), 'utf8');
}
