/** Backends that are, or lead back to, listeners of our own. */
import { expect, test } from 'vitest';
import { parseConfig } from './parse.ts';

const local = ['127.0.0.1', '::1', '192.0.2.7', '2001:db8::7', 'fe80::7'];

test.each([
  ['the same address', '127.0.0.1:53', '127.0.0.1:53'],
  ['an IPv4 wildcard and loopback', '0.0.0.0:53', '127.0.0.1:53'],
  ['an IPv4 wildcard and any address of 127/8', '0.0.0.0:53', '127.9.9.9:53'],
  ['an IPv4 wildcard and an interface of ours', '0.0.0.0:53', '192.0.2.7:53'],
  ['an IPv4 wildcard and the unspecified address', '0.0.0.0:53', '0.0.0.0:53'],
  ['an IPv6 wildcard and loopback', '[::]:53', '[::1]:53'],
  ['an IPv6 wildcard and an interface of ours', '[::]:53', '[2001:db8::7]:53'],
  ['an IPv6 wildcard and a link-local address with a zone', '[::]:53', '[fe80::7%2]:53'],
  ['an IPv6 wildcard, which is dual-stack, and an IPv4 address', '[::]:53', '192.0.2.7:53'],
  ['an IPv4-mapped backend', '127.0.0.1:53', '[::ffff:127.0.0.1]:53'],
  ['an IPv4-mapped listener', '[::ffff:192.0.2.7]:53', '192.0.2.7:53'],
  ['a mapped wildcard', '[::ffff:0.0.0.0]:53', '127.0.0.1:53'],
  ['loopback and the unspecified address', '127.0.0.1:53', '0.0.0.0:53'],
  ['IPv6 loopback and the unspecified address', '[::1]:53', '[::]:53'],
  ['loopback with a zone, which means nothing there', '[::1]:53', '[::1%1]:53'],
  ['a link-local address and the same zone', '[fe80::7%2]:53', '[fe80::7%2]:53'],
])('%s: a listener that is its own backend is an error', (_, listener, backend) => {
  expect(errors(service('a', listener, [backend]))).toEqual([
    expect.stringMatching(
      /^clusters\.a\.backends\[0\]\.address: .* our own listener .* leads back/,
    ),
  ]);
});

test.each([
  ['another port', '0.0.0.0:53', '127.0.0.1:54'],
  ['another address of loopback', '127.0.0.1:53', '127.0.0.2:53'],
  ['somebody else behind a wildcard', '0.0.0.0:53', '192.0.2.8:53'],
  ['an IPv6 address behind an IPv4 wildcard', '0.0.0.0:53', '[2001:db8::7]:53'],
  ['a link-local address in another zone', '[fe80::7%2]:53', '[fe80::7%3]:53'],
  ['an interface of ours beside the one that listens', '127.0.0.1:53', '192.0.2.7:53'],
])('%s is no loop', (_, listener, backend) => {
  expect(errors(service('a', listener, [backend]))).toEqual([]);
});

test('an IPv6 wildcard with an IPv4 twin does not receive IPv4', () => {
  const twins =
    service('a', '[::]:53', ['192.0.2.7:53']) + service('b', '0.0.0.0:53', ['10.0.0.1:53']);
  expect(errors(twins)).toEqual([
    'clusters.a.backends[0].address: this backend is our own listener 0.0.0.0:53',
  ]);
});

test('a chain of listeners that leads back is an error that names the way', () => {
  const chain =
    service('a', '127.0.0.1:1001', ['10.0.0.1:53', '127.0.0.1:1002']) +
    service('b', '127.0.0.1:1002', ['127.0.0.1:1003']) +
    service('c', '127.0.0.1:1003', ['127.0.0.1:1001']);
  expect(errors(chain)).toEqual([
    'clusters.a.backends[1].address: this backend is our own listener 127.0.0.1:1002, and leads ' +
      'back here: 127.0.0.1:1002 -> 127.0.0.1:1003 -> 127.0.0.1:1001',
    expect.stringContaining('clusters.b.backends[0]'),
    expect.stringContaining('clusters.c.backends[0]'),
  ]);
});

test('a chain of listeners that ends elsewhere is still a backend of our own', () => {
  const chain =
    service('a', '127.0.0.1:1001', ['127.0.0.1:1002']) +
    service('b', '127.0.0.1:1002', ['10.0.0.1:53']);
  expect(errors(chain)).toEqual([
    'clusters.a.backends[0].address: this backend is our own listener 127.0.0.1:1002',
  ]);
});

test('a long way is told by its first eight listeners', () => {
  const length = 300;
  const address = (index: number): string => `127.0.0.1:${1_001 + (index % length)}`;
  const chain = Array.from({ length }, (_, index) =>
    service(`c${index}`, address(index), [address(index + 1)]),
  );
  const found = errors(chain.join(''));
  expect(found).toHaveLength(length);
  expect(found[0]).toMatch(
    /leads back here: (127\.0\.0\.1:\d+ -> ){7}127\.0\.0\.1:1009 and 292 more$/,
  );
  expect(Math.max(...found.map((line) => line.length))).toBeLessThan(350);
});

test('a way of eight listeners is told whole', () => {
  const chain = Array.from({ length: 8 }, (_, index) =>
    service(`c${index}`, `127.0.0.1:${1_001 + index}`, [`127.0.0.1:${1_001 + ((index + 1) % 8)}`]),
  );
  expect(errors(chain.join(''))[0]).toMatch(/127\.0\.0\.1:1001$/);
});

test('a cluster behind two listeners reports its loop once', () => {
  const text =
    service('a', '127.0.0.1:1001', ['127.0.0.1:1001']) +
    '[[listeners]]\nprotocol = "udp"\naddress = "127.0.0.1:1002"\n';
  const both = text.replace('frontends = [', 'frontends = [{ address = "127.0.0.1:1002" }, ');
  expect(errors(both)).toHaveLength(1);
});

/** A listener, a cluster behind it, and its backends. Tables of clusters may stand between listeners. */
function service(id: string, listener: string, backends: readonly string[]): string {
  return [
    '[[listeners]]',
    'protocol = "udp"',
    `address = "${listener}"`,
    `[clusters.${id}]`,
    'protocol = "tcp"',
    `frontends = [{ address = "${listener}" }]`,
    `backends = [${backends.map((address) => `{ address = "${address}" }`).join(', ')}]`,
    '',
  ].join('\n');
}

function errors(text: string): readonly string[] {
  const { problems } = parseConfig(text, { localAddresses: local });
  return problems
    .filter(({ severity }) => severity === 'error')
    .map(({ path, problem }) => `${path}: ${problem}`);
}
