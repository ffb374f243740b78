/** Says which version of the package this is, for whoever asks a program or a process. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** From package.json, which stands two folders above the compiled file and one above the source. */
export function packageVersion(): string {
  for (const above of ['../../package.json', '../package.json']) {
    try {
      const text = readFileSync(fileURLToPath(new URL(above, import.meta.url)), 'utf8');
      const parsed: unknown = JSON.parse(text);
      if (typeof parsed === 'object' && parsed !== null && 'version' in parsed) {
        return String(parsed.version);
      }
    } catch {
      // Not in this folder: the other one has it.
    }
  }
  return 'unknown';
}
