/** Where the proxy opens its socket, and where commands look for it. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { clientSocket, serverSocket } from './socket-path.ts';

test('what is written wins, from the folder of its file; empty is none', () => {
  const environment = { SOZU_UDP_SOCKET: '/elsewhere' };
  expect(serverSocket('./sozu.sock', '/etc/sozu/a.toml', environment)).toBe('/etc/sozu/sozu.sock');
  expect(serverSocket('/run/x', 'a.toml', environment)).toBe('/run/x');
  expect(serverSocket('', 'a.toml', environment)).toBeUndefined();
});

test('both sides agree where nothing is written', () => {
  for (const environment of [{}, { SOZU_UDP_SOCKET: '/elsewhere' }, { SOZU_UDP_SOCKET: '' }]) {
    const expected = clientSocket(undefined, environment);
    expect(serverSocket(undefined, 'a.toml', environment)).toBe(expected);
  }
  expect(clientSocket(undefined, { SOZU_UDP_SOCKET: '' })).toBeUndefined();
});

test('an option wins over the environment, from the folder of whoever gives it', () => {
  expect(clientSocket('x', { SOZU_UDP_SOCKET: '/y' })).toBe(join(process.cwd(), 'x'));
});

test('the usual one is in a folder of this user alone', () => {
  const path = clientSocket(undefined, { XDG_RUNTIME_DIR: '/run/user/1' });
  expect(path).toMatch(/sozu-udp[^/]*\/control\.sock$/);
});
