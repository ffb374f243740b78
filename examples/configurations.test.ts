/** The examples of configuration files are as good as they look. */
import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { loadConfig } from '../shell/config/load.ts';

/** A machine that has what the examples ask for. */
const MACHINE = {
  descriptorLimit: 100_000,
  ephemeralPorts: 28_232,
  localAddresses: ['127.0.0.1', '192.0.2.53', '10.0.0.5', '10.0.0.6', '10.0.0.7'],
};

const files = readdirSync(new URL('.', import.meta.url)).filter((name) => name.endsWith('.toml'));

test('there are some', () => {
  expect(files).toEqual(['dns.toml', 'quic.toml', 'syslog.toml']);
});

test.each(files)('%s has no problem at all', (name) => {
  const { config, problems } = loadConfig(new URL(name, import.meta.url).pathname, MACHINE);
  expect(problems).toEqual([]);
  expect(config?.listeners[0]?.cluster).toBe(config?.clusters[0]?.cluster);
});
