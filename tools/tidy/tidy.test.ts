import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { trackedFiles, type Rule } from './files.ts';
import { checkLayers } from './layers.ts';
import { builtCore, checkPinned, runtimeDependencies, totalBytes } from './package-rules.ts';
import {
  checkBarrels,
  checkCommentWidth,
  checkFileSize,
  checkNoDefaultExport,
  checkNoFocusedTests,
  checkOpeningComment,
  checkPurity,
  checkSkips,
} from './source-rules.ts';
import { checkLooseEnds, checkMachinePaths, linkRule } from './text-rules.ts';

const root = join(import.meta.dirname, '../..');
const files = trackedFiles(root);

/** Measured at 261 kB with comments, half way; a jump past this deserves a look at what came in. */
const CORE_BYTES_MAX = 600_000;

const checkLinks = linkRule((path) => existsSync(join(root, path)));

describe('the repository', () => {
  test('has files to check', () => {
    expect(files.map(({ path }) => path)).toContain('core/index.ts');
  });

  test.each<[string, Rule]>([
    ['imports only along the arrows between layers', checkLayers],
    ['has no clock, chance or waiting in core', checkPurity],
    ['keeps comments within their margin', checkCommentWidth],
    ['has no file too long to read', checkFileSize],
    ['focuses no test', checkNoFocusedTests],
    ['skips no test without a reason', checkSkips],
    ['says at the head of each file why it exists', checkOpeningComment],
    ['has no default exports', checkNoDefaultExport],
    ['has one barrel for each top-level folder at most', checkBarrels],
    ['has no loose ends', checkLooseEnds],
    ['names no path of one machine and no registry', checkMachinePaths],
    ['links and mentions only documents that exist', checkLinks],
    ['pins its dependencies', checkPinned],
  ])('%s', (_, rule) => {
    expect(files.flatMap((file) => rule(file))).toEqual([]);
  });

  test('builds a core without runtime dependencies', () => {
    expect(runtimeDependencies(builtCore(root, files))).toEqual([]);
  });

  test('builds a core within its size budget', () => {
    expect(totalBytes(builtCore(root, files))).toBeLessThan(CORE_BYTES_MAX);
  });
});

const HEAD = '/** A sample that exists to be judged by the rules. */\n';

/** Spelled in halves, so that these lines keep the rules they show to bite. */
const LOOSE = ['TO', 'DO'].join('');
const HOME = ['', 'home', 'me'].join('/');
const SKIPPED = ['test', 'skip'].join('.');
const NOWHERE = ['doc', 'none.md'].join('/');
const REGISTRY = ['registry', 'example', 'org'].join('.');

describe('a rule fails on', () => {
  test.each<[string, Rule, string, string]>([
    ['core importing the shell', checkLayers, 'core/a.ts', "import '../shell/log.ts';"],
    ['core importing Node', checkLayers, 'core/a.ts', "import type { A } from 'node:fs';"],
    ['core importing a package', checkLayers, 'core/a.ts', "export * from 'zod';"],
    ['core importing Node at run time', checkLayers, 'core/a.ts', "void import('node:fs');"],
    [
      'a test of core importing the shell',
      checkLayers,
      'core/a.test.ts',
      "import '../shell/a.ts';",
    ],
    ['sim importing the shell', checkLayers, 'sim/a.ts', "import '../shell/log.ts';"],
    ['sim importing its command line', checkLayers, 'sim/a.ts', "import './cli/main.ts';"],
    ['sim importing Node', checkLayers, 'sim/a.ts', "import 'node:fs';"],
    ['a test of sim importing the shell', checkLayers, 'sim/a.test.ts', "import '../shell/a.ts';"],
    ['the command line of sim importing zod', checkLayers, 'sim/cli/a.ts', "import 'zod';"],
    ['the shell importing sim', checkLayers, 'shell/a/b.ts', "import '../../sim/index.ts';"],
    ['the shell importing a tool', checkLayers, 'shell/a.ts', "import '../tools/tidy/files.ts';"],
    ['the shell importing seedrandom', checkLayers, 'shell/a.ts', "import 'seedrandom';"],
    ['a clock in core', checkPurity, 'core/a.ts', 'export const at = Date.now();'],
    ['chance in core', checkPurity, 'core/a.ts', 'export const n = Math.random();'],
    ['a promise in core', checkPurity, 'core/a.ts', 'export let p: Promise<void>;'],
    ['an async function in core', checkPurity, 'core/a.ts', 'export async function f() {}'],
    ['an async arrow in core', checkPurity, 'core/a.ts', 'export const f = async () => 1;'],
    ['a wide comment', checkCommentWidth, 'core/a.ts', `${HEAD}// ${'x'.repeat(130)}`],
    ['a long file', checkFileSize, 'tools/a.sh', 'true\n'.repeat(401)],
    ['a focused test', checkNoFocusedTests, 'core/a.test.ts', "test.only('x', () => {});"],
    ['a focused table', checkNoFocusedTests, 'core/a.test.ts', "test.only.each([])('x', f);"],
    ['a skipped test', checkSkips, 'core/a.test.ts', `${SKIPPED}('x', () => {});`],
    ['a file without a comment', checkOpeningComment, 'core/a.ts', 'export const a = 1;'],
    ['a comment that says nothing', checkOpeningComment, 'core/a.ts', '/** Types. */\n'],
    ['a script without a comment', checkOpeningComment, 'tools/a.sh', '#!/bin/sh\ntrue\n'],
    ['a default export', checkNoDefaultExport, 'core/a.ts', 'export default 1;'],
    [
      'a default re-export',
      checkNoDefaultExport,
      'core/a.ts',
      "export { a as default } from './b.ts';",
    ],
    ['a re-export from a file', checkBarrels, 'core/a.ts', "export * from './b.ts';"],
    ['a barrel below the top', checkBarrels, 'core/a/index.ts', HEAD],
    ['a loose end', checkLooseEnds, 'A.md', `Fast. ${LOOSE}: measure.`],
    ['a home folder', checkMachinePaths, 'A.md', `cd ${HOME}/sozu-udp`],
    ['a registry host', checkMachinePaths, '.npmrc', `registry=https://${REGISTRY}/`],
    ['a broken link', checkLinks, 'A.md', 'See [this](decisions/none.md#why).'],
    ['a mention of no document', checkLinks, 'core/a.ts', `// see ${NOWHERE}`],
    ['a range of versions', checkPinned, 'package.json', '{ "dependencies": { "a": "^1.2.3" } }'],
  ])('%s', (_, rule, path, text) => {
    expect(rule({ path, text })).toEqual([expect.stringMatching(/^[^:]+:\d+: .+;.+/)]);
  });

  test('a compiled core that needs a package', () => {
    const file = { path: 'dist/core/a.js', text: "import './b.js';\nimport 'zod';\n" };
    expect(runtimeDependencies([file])).toEqual(['zod']);
  });
});

describe('a rule lets pass', () => {
  test.each<[string, Rule, string, string]>([
    ['tests of core that read files', checkLayers, 'core/a.test.ts', "import 'node:fs';"],
    [
      'a tool that imports the shell',
      checkLayers,
      'tools/a/b.ts',
      "import '../../shell/index.ts';",
    ],
    ['the command line of sim that imports sim', checkLayers, 'sim/cli/a.ts', "import '../a.ts';"],
    ['an option called only', checkNoFocusedTests, 'tools/a.ts', 'if (options.only) go();'],
    ['words in comments of core', checkPurity, 'core/a.ts', '// a Promise of a Date'],
    ['promises in the shell', checkPurity, 'shell/a.ts', 'export async function f() {}'],
    ['the door of a folder', checkBarrels, 'core/index.ts', `${HEAD}export * from './a.ts';`],
    ['a link to a file', checkLinks, 'A.md', '[licence](LICENSE), [web](https://x.example)'],
    ['an exact version', checkPinned, 'package.json', '{ "dependencies": { "a": "1.2.3-rc.1" } }'],
    [
      'a comment before a script',
      checkOpeningComment,
      'a.sh',
      '#!/bin/sh\n# Why this file is here.\n',
    ],
  ])('%s', (_, rule, path, text) => {
    expect(rule({ path, text })).toEqual([]);
  });
});
