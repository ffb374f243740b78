/** How many workers a file asks for, by either word, and what several cannot do. */
import { expect, test } from 'vitest';
import { parseConfig } from './parse.ts';

const TOML = `[[listeners]]
protocol = "udp"
address = "127.0.0.1:5300"
`;

test.each([
  ['', 1],
  ['worker_count = 0', 1],
  ['io = "mmsg"\nworker_count = 3', 3],
  ['io = "mmsg"\nworkers = 4', 4],
  ['io = "auto"\nworkers = "auto"', 'auto'],
])('%s', (top, workers) => {
  const { settings, problems } = parseConfig(`${top}\n${TOML}`);
  expect(settings?.workers).toBe(workers);
  expect(problems.filter(({ severity }) => severity === 'error')).toEqual([]);
});

test.each([
  ['io = "dgram"\nworkers = 2', 'error workers: node:dgram has one worker: it cannot share a port'],
  [
    'io = "mmsg"\nworkers = 2\nworker_count = 2',
    'error worker_count: the number of workers is also said by `workers`',
  ],
  ['io = "mmsg"\nworkers = 0', expect.stringContaining('error workers: expected')],
])('%s is an error', (top, told) => {
  expect(problemsOf(`${top}\n${TOML}`)).toEqual([told]);
});

test('fewer flows than workers leave some without', () => {
  expect(problemsOf(`io = "mmsg"\nworkers = 3\n${TOML}max_flows = 2\n`)).toEqual([
    'warning listeners[0].max_flows: 2 flows are shared by 3 workers: some may have none',
  ]);
});

function problemsOf(text: string): string[] {
  return parseConfig(text)
    .problems.filter(({ severity, path }) => severity === 'error' || path.endsWith('max_flows'))
    .map(({ severity, path, problem }) => `${severity} ${path}: ${problem}`);
}
