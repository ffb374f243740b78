/** `npm run generate`: brings every document with generated parts up to date, in the folder it is called in. */
import { readFileSync, writeFileSync } from 'node:fs';
import { DOCUMENTS } from './documents.ts';

for (const { path, generate } of DOCUMENTS) {
  const before = readFileSync(path, 'utf8');
  const after = generate(before);
  if (after !== before) writeFileSync(path, after);
  process.stdout.write(`${path}: ${after === before ? 'up to date' : 'written'}\n`);
}
