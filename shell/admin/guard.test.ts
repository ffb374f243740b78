/** Who is let in: by the name they call, by what they want to do, and by the token. */
import { expect, test } from 'vitest';
import { Guard, type Head } from './guard.ts';

const TOKEN = 'correct-horse-battery';

test.each([
  '127.0.0.1',
  '127.0.0.1:9464',
  '10.1.2.3:80',
  '[::1]',
  '[::1]:9464',
  '[2001:db8::1]:1',
  'localhost',
  'LocalHost:9464',
  'lb.example.com',
  'LB.example.com:443',
])('answers who calls %s', (host) => {
  expect(refusal({ host })).toBeUndefined();
});

test.each([
  undefined,
  '',
  'evil.example',
  'evil.example:9464',
  'localhost.evil.example',
  '127.0.0.1.evil.example',
  '127.0.0.1:9464:1',
  '127.0.0.1, localhost',
  'localhost@evil.example',
  '[evil.example]',
  '[127.0.0.1]',
  '[::1',
  '::1',
  '0x7f000001',
  '2130706433',
  '127.1',
  'localhost:123456',
  'localhost ',
])('refuses who calls %s, so that no page of another name reads along', (host) => {
  expect(refusal({ host })).toBe('host');
});

test('refuses whatever would change or send something', () => {
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'get', undefined]) {
    expect(refusal({ method })).toBe('method');
  }
  expect(refusal({ method: 'HEAD' })).toBeUndefined();
  expect(refusal({ hasBody: true })).toBe('body');
});

test('with a token, every path but two needs it', () => {
  for (const path of ['/metrics', '/status', '/flows', '/events', '/none', '/live/', '//ready']) {
    expect(refusal({ path }, TOKEN)).toBe('token');
    expect(refusal({ path, authorization: `Bearer ${TOKEN}` }, TOKEN)).toBeUndefined();
    expect(refusal({ path, authorization: `bearer ${TOKEN}` }, TOKEN)).toBeUndefined();
  }
  for (const path of ['/live', '/ready']) expect(refusal({ path }, TOKEN)).toBeUndefined();
});

test.each([
  '',
  'Bearer',
  'Bearer ',
  `Bearer  ${TOKEN}`,
  `Bearer ${TOKEN.slice(1)}`,
  `Bearer ${TOKEN}x`,
  `Bearer ${TOKEN} x`,
  `Bearer ${TOKEN.toUpperCase()}`,
  `Basic ${TOKEN}`,
  TOKEN,
])('"%s" is no token', (authorization) => {
  expect(refusal({ path: '/status', authorization }, TOKEN)).toBe('token');
});

function refusal(head: Partial<Head>, token?: string): string | undefined {
  const guard = new Guard({ hosts: ['lb.example.com'], token });
  const usual = { method: 'GET', path: '/metrics', host: 'localhost', authorization: undefined };
  return guard.refusal({ ...usual, hasBody: false, ...head });
}
