/** Documents say what the code says: generated parts are fresh, and what a reader would copy works. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FLOW_TRANSITIONS } from '../../core/index.ts';
import { parseConfig } from '../../shell/index.ts';
import { DOCUMENTS } from './documents.ts';
import { lifecycleDocument } from './lifecycle.ts';

test.each(DOCUMENTS)('$path is fresh: else run npm run generate', ({ path, generate }) => {
  expect(generate(read(path))).toBe(read(path));
});

test('a stale table is found, and the prose around it is kept', () => {
  const stale =
    'Before.\n<!-- diagram --><!-- end -->\n<!-- transitions -->\nold\n<!-- end -->\nAfter.';
  const fresh = lifecycleDocument(stale);
  expect(fresh).toMatch(/^Before\.\n.*\nAfter\.$/s);
  expect(fresh).not.toContain('old');
  for (const event of Object.keys(FLOW_TRANSITIONS.Established)) {
    expect(fresh).toMatch(
      new RegExp(`\\| Established +\\| ${event} +\\| (?:Established|Lingering|Closing)`),
    );
  }
  expect(lifecycleDocument(fresh)).toBe(fresh);
});

test('a document without its markers is refused', () => {
  expect(() => lifecycleDocument('# Lifecycle\n')).toThrow('missing marker: diagram');
});

test('the configuration that README.md shows loads without errors or warnings', () => {
  const examples = blocks(read('README.md'), 'toml');
  expect(examples).toHaveLength(1);
  const { config, problems } = parseConfig(examples[0] ?? '');
  expect(problems).toEqual([]);
  expect(config?.clusters[0]).toMatchObject({
    proxyProtocolEveryDatagram: true,
    sendProxyProtocol: true,
    responses: 1,
    responsesPerRequest: true,
  });
});

test('README.md starts the proxy with scripts that package.json has', () => {
  const manifest = read('package.json');
  const scripts = blocks(read('README.md'), 'sh').flatMap((block) =>
    [...block.matchAll(/npm (?:run (?:-s )?)?([a-z-]+)/g)].map(([, name]) => name),
  );
  expect(scripts).toContain('start');
  for (const name of scripts.filter((script) => script !== 'ci')) {
    expect(manifest).toContain(`"${name}": "`);
  }
});

test('what core/README.md shows of an example is the whole of it but the imports, and is tested', () => {
  const shown = blocks(read('core/README.md'), 'ts');
  expect(shown).toEqual(['new-machine', 'run-loop'].map((name) => bodyOf(`examples/${name}.ts`)));
});

/** From the first declaration to the end. */
function bodyOf(path: string): string {
  const [, body = ''] = /^} from '[^']+';\n\n([^]*)$/m.exec(read(path)) ?? [];
  return body;
}

/** Fenced blocks of one language. */
function blocks(markdown: string, language: string): readonly string[] {
  return [...markdown.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].flatMap(([, name, body]) =>
    name === language && body !== undefined ? [body] : [],
  );
}

function read(path: string): string {
  return readFileSync(join(import.meta.dirname, '../..', path), 'utf8');
}
