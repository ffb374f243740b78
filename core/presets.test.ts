/** Presets: the figures that issue and standards give, and that every value has its reason. */
import { expect, test } from 'vitest';
import { PRESET_NAMES, PRESETS, presetValue, type PresetName } from './presets.ts';
import { seconds } from './time.ts';

test('idle times are those of the field, equal in both directions', () => {
  const expected: Record<PresetName, number> = {
    dns: 5,
    ntp: 5,
    radius: 30,
    syslog: 60,
    generic: 120,
    sip: 300,
    quic: 300,
    wireguard: 300,
  };
  for (const name of PRESET_NAMES) {
    expect(presetValue(name, 'frontTimeout'), name).toBe(seconds(expected[name]));
    expect(presetValue(name, 'backTimeout'), name).toBe(seconds(expected[name]));
  }
});

test('only protocols of short exchanges, or without any, are below the two minutes of RFC 4787', () => {
  const short = PRESET_NAMES.filter(
    (name) => (presetValue(name, 'frontTimeout') ?? 0) < seconds(120),
  );
  expect(short).toEqual(['dns', 'ntp', 'radius', 'syslog']);
});

test('every preset puts the PROXY header on every datagram', () => {
  for (const name of PRESET_NAMES) {
    expect(presetValue(name, 'proxyProtocolEveryDatagram'), name).toBe(true);
  }
});

test('silence speaks against a backend only where the protocol answers', () => {
  expect(
    Object.fromEntries(PRESET_NAMES.map((name) => [name, presetValue(name, 'exchange')])),
  ).toEqual({
    dns: 'request-response',
    ntp: 'request-response',
    radius: 'request-response',
    syslog: 'one-way',
    sip: 'request-response',
    quic: 'request-response',
    wireguard: 'one-way',
    generic: undefined,
  });
});

test('a preset that counts responses counts them per request, and lets late replies through', () => {
  const counting = PRESET_NAMES.filter((name) => (presetValue(name, 'responses') ?? 0) > 0);
  expect(counting).toEqual(['dns', 'ntp']);
  for (const name of counting) {
    expect(presetValue(name, 'responsesPerRequest'), name).toBe(true);
    expect(presetValue(name, 'requestsLinger'), name).toBe(true);
  }
});

test('flows of a dead backend move on, but for connections that could not be saved', () => {
  const pinned = PRESET_NAMES.filter((name) => presetValue(name, 'onBackendDown') !== 'rebind');
  expect(pinned).toEqual(['quic']);
  expect(presetValue('quic', 'onBackendDown')).toBe('pin');
});

test('an NTP backend may be a client; no other may', () => {
  const allowed = PRESET_NAMES.filter((name) => presetValue(name, 'allowBackendAsClient') === true);
  expect(allowed).toEqual(['ntp']);
});

test('without a preset nothing is said', () => {
  expect(presetValue(undefined, 'frontTimeout')).toBeUndefined();
});

test('each value has a sentence for its reason', () => {
  expect(Object.keys(PRESETS)).toEqual([...PRESET_NAMES]);
  for (const preset of Object.values(PRESETS)) {
    for (const [key, { reason }] of Object.entries(preset)) {
      expect(reason, key).toMatch(/^[A-Z].{20,}\.$/);
    }
  }
});
