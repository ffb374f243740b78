import { expect, test } from 'vitest';
import { policyOf } from './error-policy.ts';

test.each(['ENETDOWN', 'ENETUNREACH', 'EHOSTUNREACH', 'EHOSTDOWN', 'ENOBUFS'])(
  '%s on a send loses the datagram and speaks against the way to the backend',
  (errno) => {
    expect(policyOf(errno)).toMatchObject({ drop: 'droppedSendError', evidence: 'unreachable' });
  },
);

test('a refusal speaks against the backend, a datagram that is too big against nobody', () => {
  expect(policyOf('ECONNREFUSED')).toMatchObject({ evidence: 'refused' });
  expect(policyOf('EMSGSIZE')).toMatchObject({ drop: 'droppedTooBig', evidence: undefined });
});

test('an open that fails names what the machine lacks', () => {
  const lacks = ['EADDRINUSE', 'EAGAIN', 'EADDRNOTAVAIL', 'EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM'];
  expect(lacks.map((errno) => policyOf(errno).lacks)).toEqual([
    'port',
    'port',
    'address',
    'descriptor',
    'descriptor',
    'descriptor',
    'descriptor',
  ]);
});

test('an error that nobody foresaw loses one datagram or flow, and means nothing else', () => {
  expect(policyOf('EWHATEVER')).toEqual({
    drop: 'droppedSendError',
    evidence: undefined,
    lacks: undefined,
  });
});
