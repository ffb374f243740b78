/** An error whose remedy is obvious says it, in words that can be typed. */
import { expect, test } from 'vitest';
import { parseConfig } from './parse.ts';

test.each([
  ['grace = "5"', 'grace', 'write 5 without quotes'],
  ['grace = 1.5', 'grace', 'write a whole number'],
  ['grace = -1', 'grace', 'write 0 or more'],
  ['grace = 4294967296', 'grace', 'write 4294967295 or less'],
  ['activate_listeners = "true"', 'activate_listeners', 'write true without quotes'],
  ['activate_listeners = 1', 'activate_listeners', 'write true or false'],
  ['log_level = "Info"', 'log_level', 'write "info"'],
  ['log_level = "debgu"', 'log_level', 'write "debug"'],
  ['log_level = "loud"', 'log_level', 'write one of these words'],
  ['log_level = 3', 'log_level', 'write one of these words'],
])('at the top, %s', (line, path, fix) => {
  expect(fixes(`${line}\n${SOUND}`)).toEqual([[path, fix]]);
});

test.each([
  [
    'a listener that is no table',
    'listeners = ["127.0.0.1:53"]',
    'listeners[0]',
    'write [[listeners]]',
  ],
  ['listeners that are no array', 'listeners = 1', 'listeners', 'write [[listeners]]'],
])('%s', (_, text, path, fix) => {
  expect(fixes(text)).toContainEqual([path, fix]);
});

test.each([
  ['clusters that are no tables', 'clusters = 3', 'clusters', /^write \[clusters\.<id>\]/],
  ['a cluster that is no table', 'clusters.c = 3', 'clusters.c', /^write \[clusters\.c\]$/],
  ['a cluster with a strange name', 'clusters."a b" = 3', 'clusters."a b"', /\[clusters\."a b"\]/],
])('%s', (_, line, path, fix) => {
  expect(fixes(`${line}\n${LISTENER}`)).toEqual([[path, expect.stringMatching(fix)]]);
});

test.each([
  [
    'a frontend that is an address',
    'frontends',
    '["127.0.0.1:53"]',
    'write { address = "127.0.0.1:53" }',
  ],
  [
    'a frontend that is a number',
    'frontends',
    '[{ address = "127.0.0.1:53" }, 53]',
    'write a table',
  ],
  [
    'backends that are no array',
    'backends',
    '"10.0.0.1:53"',
    'write an array of tables, such as [{ address = "10.0.0.10:53" }]',
  ],
  ['a backend without an address', 'backends', '[{ weight = 1 }]', 'add the key'],
  ['an address that is a number', 'backends', '[{ address = 53 }]', 'put it in quotes'],
  ['an address that is a table', 'backends', '[{ address = {} }]', 'write a text in quotes'],
  [
    'an empty name',
    'backends',
    '[{ address = "10.0.0.1:53", backend_id = "" }]',
    'write a text, or remove the key',
  ],
])('%s', (_, key, value, fix) => {
  const text = SOUND.replace(new RegExp(`^${key} = .*$`, 'm'), `${key} = ${value}`);
  expect(fixes(text).map(([, told]) => told)).toContain(fix);
});

test.each([
  ['[fe80::1%eth0]:53', 'the zone "eth0" in "[fe80::1%eth0]:53" is not a number'],
  ['[fe80::1%1x]:53', 'the zone "1x" in "[fe80::1%1x]:53" is not a number'],
])('a zone by name, %s, is refused as what it is', (address, problem) => {
  const { problems } = parseConfig(SOUND.replace('10.0.0.1:53', address));
  expect(problems).toMatchObject([
    { problem, fix: 'write the index that `ip link` shows: [fe80::1%2]:53' },
  ]);
  expect(fixes(SOUND.replace('10.0.0.1:53', '[fe80::1%2]:53'))).toEqual([]);
});

test('a zone on what is no IPv6 address is not the mistake', () => {
  const { problems } = parseConfig(SOUND.replace('10.0.0.1:53', '[10.0.0.1%eth0]:53'));
  expect(problems).toMatchObject([
    { problem: expect.stringContaining('not an address and a port') },
  ]);
});

const LISTENER = '[[listeners]]\nprotocol = "udp"\naddress = "127.0.0.1:53"\n';
/** A file without problems. */
const SOUND = `${LISTENER}[clusters.c]
protocol = "tcp"
frontends = [{ address = "127.0.0.1:53" }]
backends = [{ address = "10.0.0.1:53" }]
`;

/** Path and fix of each error. */
function fixes(text: string): readonly (readonly [string, string | undefined])[] {
  const errors = parseConfig(text).problems.filter(({ severity }) => severity === 'error');
  return errors.map(({ path, fix }) => [path, fix]);
}
