import { expect, test } from 'vitest';
import { milliseconds, seconds } from '../time.ts';
import { HEALTH_DEFAULTS, healthSettings } from './settings.ts';

test('settings_from_proto_defaults: rise 2, fall 3, every 5 s, 2 s to answer, TCP, fail open', () => {
  expect(healthSettings({})).toEqual({
    mode: 'TCP_PROBE',
    tcpPort: undefined,
    rise: 2,
    fall: 3,
    failOpen: true,
    udpProbePayload: undefined,
    expectReply: true,
    probeInterval: seconds(5),
    probeTimeout: seconds(2),
  });
  expect(healthSettings({})).toEqual(HEALTH_DEFAULTS);
});

test('a rise, fall, interval or timeout of 0 counts as 1; what was given stays', () => {
  const zero = seconds(0);
  expect(
    healthSettings({ rise: 0, fall: 0, probeInterval: zero, probeTimeout: zero }),
  ).toMatchObject({ rise: 1, fall: 1, probeInterval: seconds(1), probeTimeout: seconds(1) });
  const given = { rise: 4, fall: 5, probeInterval: milliseconds(7), failOpen: false, tcpPort: 53 };
  expect(healthSettings(given)).toMatchObject(given);
});

test('udp_probe_payload_is_captured: and UDP_PROBE without one is a bug of the parser', () => {
  const udpProbePayload = Uint8Array.of(1, 2, 3);
  expect(healthSettings({ mode: 'UDP_PROBE', udpProbePayload }).udpProbePayload).toEqual(
    udpProbePayload,
  );
  expect(() => healthSettings({ mode: 'UDP_PROBE' })).toThrow('a payload');
  expect(() => healthSettings({ mode: 'UDP_PROBE', udpProbePayload: new Uint8Array() })).toThrow(
    'a payload',
  );
});
