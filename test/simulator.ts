/** Runs the built simulator as a user does, in a process of its own; also makes builds with something planted. */
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const BUILT = join(ROOT, 'dist');

export interface SimulatorRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface SimulatorOptions {
  /** On top of an environment without any variable of the simulator. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Another build than the one in dist. */
  readonly dist?: string;
  /** Another Node. */
  readonly node?: string;
  /** Hears standard output as it comes. */
  readonly onOutput?: (process: ChildProcessWithoutNullStreams) => void;
}

/** Runs it to its end. */
export function simulate(
  args: readonly string[],
  options: SimulatorOptions = {},
): Promise<SimulatorRun> {
  const { environment = {}, dist = BUILT, node = process.execPath, onOutput } = options;
  const clean = Object.entries(process.env).filter(([name]) => !name.startsWith('SOZU_UDP_SIM_'));
  const env = { ...Object.fromEntries(clean), ...environment };
  const child = spawn(node, [join(dist, 'sim/cli/main.js'), ...args], { env, cwd: ROOT });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (data: Buffer) => {
    stdout += data.toString();
    onOutput?.(child);
  });
  child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
}

/** A line of JavaScript in the build that is replaced. */
export interface Planted {
  /** Below dist, as emitted. */
  readonly file: string;
  /** Stands there exactly once. */
  readonly search: string;
  readonly replace: string;
}

export interface PlantedBuild {
  readonly dist: string;
  dispose(): void;
}

/** A copy of the build with `changes` in it, removed again by `dispose`. */
export function plantedBuild(changes: readonly Planted[]): PlantedBuild {
  const cache = join(ROOT, '.cache');
  mkdirSync(cache, { recursive: true });
  const directory = mkdtempSync(join(cache, 'planted-'));
  const dist = join(directory, 'dist');
  for (const folder of ['core', 'shell', 'sim', 'scenarios']) {
    const filter = (path: string): boolean => !/\.map$|\.d\.ts$/.test(path);
    cpSync(join(BUILT, folder), join(dist, folder), { recursive: true, filter });
  }
  for (const { file, search, replace } of changes) {
    const text = readFileSync(join(dist, file), 'utf8');
    if (text.split(search).length !== 2) throw new Error(`not exactly once in ${file}: ${search}`);
    writeFileSync(
      join(dist, file),
      text.replace(search, () => replace),
    );
  }
  return { dist, dispose: () => rmSync(directory, { recursive: true }) };
}
