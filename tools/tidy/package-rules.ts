/** House rules about the package: exact versions, and a core that stays small and leans on nothing once it is built. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'oxc-parser';
import { finding, isTest, isTypeScript, type TextFile } from './files.ts';

const EXACT = /^\d+\.\d+\.\d+(?:-[\w.]+)?$/;

/** Every dependency of package.json has one version, so that two installs never differ. */
export function checkPinned(file: TextFile): string[] {
  if (file.path !== 'package.json') return [];
  const manifest: unknown = JSON.parse(file.text);
  const groups = ['dependencies', 'devDependencies', 'optionalDependencies'];
  return groups.flatMap((group) =>
    entriesOf(entriesOf(manifest).find(([key]) => key === group)?.[1])
      .filter(([, version]) => !EXACT.test(String(version)))
      .map(([name, version]) =>
        finding(file, 1, `${name} is "${String(version)}"; write one exact version`),
      ),
  );
}

function entriesOf(value: unknown): [string, unknown][] {
  return typeof value === 'object' && value !== null ? Object.entries(value) : [];
}

/** The compiled files of the sources of core, as the package would ship them. */
export function builtCore(root: string, files: readonly TextFile[]): TextFile[] {
  return files
    .filter((file) => file.path.startsWith('core/') && isTypeScript(file) && !isTest(file))
    .map(({ path }) => `dist/${path.replace(/\.ts$/, '.js')}`)
    .map((path) => ({ path, text: readBuilt(root, path) }));
}

function readBuilt(root: string, path: string): string {
  const file = join(root, path);
  if (!existsSync(file)) throw new Error(`${path} is missing; run npx tsc -b`);
  return readFileSync(file, 'utf8');
}

/** What compiled files import by a package's name. */
export function runtimeDependencies(files: readonly TextFile[]): string[] {
  const requests = files.flatMap(({ path, text }) =>
    parseSync(path, text).module.staticImports.map(({ moduleRequest }) => moduleRequest.value),
  );
  return [...new Set(requests.filter((request) => !request.startsWith('.')))];
}

export function totalBytes(files: readonly TextFile[]): number {
  return files.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
}
