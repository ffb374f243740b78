/** The examples of configuration files are as good as they look. */
import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { loadConfig } from './load.ts';

/** A machine that has what the examples ask for. */
const MACHINE = {
  descriptorLimit: 100_000,
  ephemeralPorts: 28_232,
  localAddresses: ['127.0.0.1', '192.0.2.53', '10.0.0.5', '10.0.0.6', '10.0.0.7'],
};

const folder = new URL('../../examples/', import.meta.url);
const files = readdirSync(folder).filter((name) => name.endsWith('.toml'));

test('there are some', () => {
  expect(files).toEqual(['dns.toml', 'quic.toml', 'syslog.toml']);
});

test.each(files)('%s has no problem at all', (name) => {
  const { config, problems } = loadConfig(new URL(name, folder).pathname, MACHINE);
  expect(problems).toEqual([]);
  expect(config?.listeners[0]?.cluster).toBe(config?.clusters[0]?.cluster);
});
