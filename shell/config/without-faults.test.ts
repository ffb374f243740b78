/** One fault does not hide another: what is left of a broken table is judged with the rest. */
import { expect, test } from 'vitest';
import { parseConfig } from './parse.ts';

test('a misspelt key in a listener hides no loop through it', () => {
  const { config, problems } = parseConfig(`
    [[listeners]]
    protocol = "udp"
    address = "127.0.0.1:5301"
    front_timeot = 3
    [[listeners]]
    protocol = "udp"
    address = "127.0.0.1:5302"
    [clusters.a]
    protocol = "tcp"
    frontends = [{ address = "127.0.0.1:5301" }]
    backends = [{ address = "127.0.0.1:5302" }]
    [clusters.b]
    protocol = "tcp"
    frontends = [{ address = "127.0.0.1:5302" }]
    backends = [{ address = "127.0.0.1:5301" }]
  `);
  expect(config).toBeUndefined();
  const errors = problems.filter(({ severity }) => severity === 'error');
  expect(errors.map(({ path }) => path)).toEqual([
    'listeners[0].front_timeot',
    'clusters.a.backends[0].address',
    'clusters.b.backends[0].address',
  ]);
});

test('an error among the limits hides no warning of their cluster', () => {
  const text = (limit: string): string => `
    [[listeners]]
    protocol = "udp"
    address = "127.0.0.1:5301"
    [clusters.a]
    protocol = "tcp"
    frontends = [{ address = "127.0.0.1:5301" }]
    backends = [{ address = "10.0.0.1:53" }]
    [clusters.a.udp]
    exchange = "request-response"
    requests = 1
    [clusters.a.udp.limits]
    ${limit}
  `;
  const warned = warningsOf(text('sketch_columns = 256'));
  expect(warned).toContain('clusters.a.udp.requests');
  expect(warningsOf(text('sketch_columns = 255'))).toEqual(
    warned.filter((path) => !path.includes('sketch_columns')),
  );
});

test('a backend without an address leaves its cluster unjudged until it has one', () => {
  const { config, problems } = parseConfig(`
    [[listeners]]
    protocol = "udp"
    address = "127.0.0.1:5301"
    [clusters.a]
    protocol = "tcp"
    frontends = [{ address = "127.0.0.1:5301" }]
    backends = [{ address = "nowhere" }, { address = "127.0.0.1:5301" }]
  `);
  expect(config).toBeUndefined();
  expect(problems.filter(({ severity }) => severity === 'error').map(({ path }) => path)).toEqual([
    'clusters.a.backends[0].address',
  ]);
});

function warningsOf(text: string): string[] {
  const { problems } = parseConfig(text);
  return problems.filter(({ severity }) => severity === 'warning').map(({ path }) => path);
}
