/**
 * Who may import whom (doc/ARCHITECTURE.md). The compiler's project references and `types: []` say most of it; this says
 * all of it in one table, npm packages included, and says it of tests too.
 */
import { posix } from 'node:path';
import { parseSync } from 'oxc-parser';
import { finding, isTest, isTypeScript, lineAt, type TextFile } from './files.ts';

interface Layer {
  /** Layers whose files may be imported, besides its own. */
  readonly layers: readonly string[];
  /** npm packages; `node:*` stands for all of Node. */
  readonly packages: readonly string[];
}

/** In the order of the longest path first: `sim/cli` is not `sim`. */
const LAYERS: Readonly<Record<string, Layer>> = {
  'sim/cli': {
    layers: ['core', 'sim', 'scenarios'],
    packages: ['node:*', 'commander', 'chalk', 'oxc-parser'],
  },
  core: { layers: [], packages: [] },
  sim: { layers: ['core'], packages: ['seedrandom'] },
  scenarios: { layers: ['core', 'sim'], packages: [] },
  shell: {
    layers: ['core'],
    packages: ['node:*', 'commander', 'chalk', 'smol-toml', 'zod', 'pino', 'prom-client', 'koffi'],
  },
  tools: {
    layers: ['core', 'sim', 'sim/cli', 'scenarios', 'shell'],
    packages: ['node:*', 'commander', 'chalk', 'oxc-parser', 'vite'],
  },
  examples: { layers: ['core'], packages: [] },
  test: { layers: ['core', 'sim'], packages: ['node:*', 'vitest', 'fast-check', 'zod'] },
};

/** What tests may import on top of what their layer may: never one of `sim` and `shell` from the other. */
const FOR_TESTS: Layer = {
  layers: ['core', 'test', 'examples', 'scenarios'],
  packages: ['node:*', 'vitest', 'fast-check', 'smol-toml'],
};

/** Imports that point up or across. Files outside every layer, such as vitest.config.ts, import what they like. */
export function checkLayers(file: TextFile): string[] {
  const name = layerOf(file.path);
  const own = name === undefined ? undefined : LAYERS[name];
  if (!isTypeScript(file) || name === undefined || own === undefined) return [];
  const more = isTest(file) ? FOR_TESTS : { layers: [], packages: [] };
  const layers = new Set([name, ...own.layers, ...more.layers]);
  const packages = new Set([...own.packages, ...more.packages]);
  return imports(file).flatMap(({ request, offset }) => {
    const problem = request.startsWith('.')
      ? layerProblem(posix.join(posix.dirname(file.path), request), name, layers)
      : packageProblem(request, name, packages);
    return problem === undefined ? [] : [finding(file, lineAt(file, offset), problem)];
  });
}

function layerProblem(
  target: string,
  name: string,
  allowed: ReadonlySet<string>,
): string | undefined {
  const layer = layerOf(target);
  if (layer !== undefined && allowed.has(layer)) return undefined;
  return `${name} must not import ${target}; move what both need to core, or pass it in as an argument`;
}

function packageProblem(
  request: string,
  name: string,
  allowed: ReadonlySet<string>,
): string | undefined {
  const known = request.startsWith('node:') ? 'node:*' : request.split('/')[0];
  if (known !== undefined && allowed.has(known)) return undefined;
  return `${name} must not import '${request}'; do it in shell or tools, and hand the result in as data`;
}

function layerOf(path: string): string | undefined {
  return Object.keys(LAYERS).find((layer) => path.startsWith(`${layer}/`));
}

interface Import {
  readonly request: string;
  readonly offset: number;
}

/** Static and dynamic imports and re-exports, those of types too; not dynamic ones of a computed path. */
function imports(file: TextFile): readonly Import[] {
  const { module } = parseSync(file.path, file.text);
  const reexports = module.staticExports.flatMap(({ entries }) =>
    entries.flatMap(({ moduleRequest }) => moduleRequest ?? []),
  );
  const named = [...module.staticImports.map((one) => one.moduleRequest), ...reexports];
  const literal = module.dynamicImports.filter(({ moduleRequest: { start } }) =>
    /['"`]/.test(file.text.charAt(start)),
  );
  const dynamic = literal.map(({ moduleRequest: { start, end } }) => ({
    request: file.text.slice(start + 1, end - 1),
    offset: start,
  }));
  return [...named.map(({ value, start }) => ({ request: value, offset: start })), ...dynamic];
}
