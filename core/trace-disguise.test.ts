import { expect, test } from 'vitest';
import {
  addressOf,
  backendsOf,
  clusterSettings,
  configOf,
  listenerConfig,
} from '../test/plane-bench.ts';
import { healthSettings } from './health/settings.ts';
import { dgramHeader } from './proxy-protocol.ts';
import { Disguise } from './trace-disguise.ts';

const disguise = new Disguise((prefix) => prefix.length % 2 === 0);

test('a configuration keeps its form and its settings, and no name, address or probe of anybody', () => {
  const config = configOf(
    [
      clusterSettings({
        cluster: 'payroll',
        backends: backendsOf(1, 2),
        health: healthSettings({ mode: 'UDP_PROBE', udpProbePayload: Uint8Array.of(1, 2, 3) }),
      }),
    ],
    [listenerConfig({ cluster: 'payroll', address: addressOf('10.0.1.1:53') })],
  );
  const before = JSON.stringify(config);
  expect(before).toContain('payroll');
  const moved = disguise.value(config);
  const text = JSON.stringify(moved);
  expect(text).not.toContain('payroll');
  for (const { id, address } of backendsOf(1, 2)) {
    expect(text).not.toContain(`"${id}"`);
    expect(text).not.toContain(`"a":${address.a},`);
  }
  expect(moved).toMatchObject({
    grace: config.grace,
    clusters: [
      {
        cluster: 'name-1',
        loadBalancing: config.clusters[0]?.loadBalancing,
        onBackendRemoved: 'rebind',
        health: { mode: 'UDP_PROBE', udpProbePayload: new Uint8Array(3) },
      },
    ],
    listeners: [{ cluster: 'name-1', address: disguise.address(addressOf('10.0.1.1:53')) }],
  });
  expect(disguise.value(config)).toEqual(moved);
});

test('blocks are those of their members, and headers name the others', () => {
  const client = addressOf('10.9.8.7:1000');
  const block = { base: addressOf('10.9.0.0:0'), bits: 16 };
  expect(disguise.value({ allow: [block] })).toEqual({
    allow: [{ bits: 16, base: { ...block.base, a: disguise.address(client).a & ~0xffff } }],
  });
  const backend = addressOf('10.0.0.1:53');
  const [other, server] = [disguise.address(client), disguise.address(backend)];
  expect(disguise.header(dgramHeader(client, backend))).toEqual(dgramHeader(other, server));
  expect(disguise.header(undefined)).toBeUndefined();
});
