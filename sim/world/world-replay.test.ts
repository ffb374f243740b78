import { describe, expect, test } from 'vitest';
import { present } from '../../core/assert.ts';
import { healthSettings } from '../../core/health/settings.ts';
import { instant, milliseconds } from '../../core/time.ts';
import { WORLD_SCENARIOS } from '../../scenarios/index.ts';
import { Observer } from '../properties.ts';
import { seedFromNumber } from '../seed.ts';
import type { Script, WorldAction } from './actions.ts';
import {
  backendList,
  configOf,
  populationOf,
  proxyOf,
  QUIET_LINK,
  SHORT_PHASES,
} from './builders.ts';
import { FAULTLESS_OS } from './os-faults.ts';
import { runWorldSeed } from './run-world.ts';
import type { WorldSpec } from './spec.ts';
import {
  decodeWorldReplay,
  encodeWorldReplay,
  isWorldReplay,
  makeWorldReplay,
  verifyWorldReplay,
  type WorldReplay,
} from './world-replay.ts';

const PROPERTY = 'every datagram ends exactly once';
const SEED = seedFromNumber(3);
const CONFIG = configOf({
  backends: backendList(2),
  health: healthSettings({ mode: 'UDP_PROBE', udpProbePayload: Uint8Array.of(0, 7, 255) }),
});
const SPEC: WorldSpec = {
  phases: SHORT_PHASES,
  link: QUIET_LINK,
  proxies: [proxyOf(CONFIG)],
  ...populationOf({ clients: 2, backends: 2 }),
  withinTolerance: false,
};
const HOST = { role: 'backend', number: 1 } as const;
const EVERYTHING: readonly WorldAction[] = [
  { kind: 'Begin', phase: 'calm' },
  { kind: 'Send', client: 0, proxy: 0, listener: 0, bytes: 40 },
  { kind: 'Reopen', client: 1 },
  {
    kind: 'Spoof',
    host: 0,
    src: proxyOf(CONFIG).shape.addresses[0]!,
    proxy: 0,
    listener: 0,
    bytes: 9,
  },
  { kind: 'Remap', client: 0 },
  { kind: 'Behave', backend: 0, manner: { answers: 2, tcp: undefined } },
  { kind: 'Power', host: HOST, on: false },
  {
    kind: 'LinkFault',
    host: HOST,
    place: 'up',
    faults: { loss: undefined, mtu: { bytes: 600, icmp: true } },
    lasts: milliseconds(9),
  },
  { kind: 'Cut', from: HOST, to: { role: 'proxy', number: 0 }, lasts: milliseconds(5) },
  { kind: 'HostFault', proxy: 0, faults: { ...FAULTLESS_OS, sendRate: 0 }, lasts: milliseconds(5) },
  { kind: 'Order', proxy: 0, command: { kind: 'Reload', config: CONFIG } },
  { kind: 'Order', proxy: 0, command: { kind: 'Status' } },
  { kind: 'Crash', proxy: 0 },
  { kind: 'Start', proxy: 0, config: CONFIG },
  { kind: 'Begin', phase: 'drain' },
];
const SCRIPT: Script = EVERYTHING.map((action, place) => ({ at: instant(place * 2_000), action }));
const SAMPLE = makeWorldReplay('sample', 'Nothing.', {
  spec: SPEC,
  script: SCRIPT,
  seed: SEED,
  property: PROPERTY,
});

describe('the file', () => {
  test('keeps every kind of action, bytes, and what is there and undefined', () => {
    const text = encodeWorldReplay(SAMPLE);
    const decoding = decodeWorldReplay(text);
    expect(decoding).toEqual({ ok: true, replay: SAMPLE });
    expect(text).toContain('"udpProbePayload":{"hex":"0007ff"}');
    expect(decoding.ok && encodeWorldReplay(decoding.replay)).toBe(text);
    const behave = decoding.ok ? decoding.replay.script[5]?.action : undefined;
    expect(behave).toHaveProperty('manner', { answers: 2 });
  });

  test('has an action a line', () => {
    const lines = encodeWorldReplay(SAMPLE).split('\n');
    expect(lines).toContain(
      '    {"at":2000,"action":{"kind":"Send","client":0,"proxy":0,"listener":0,"bytes":40}},',
    );
  });

  test.each(WORLD_SCENARIOS.map((scenario) => [scenario.name, scenario] as const))(
    'keeps whatever %s draws and does',
    async (_, scenario) => {
      const run = await runWorldSeed(scenario, SEED, { observer: new Observer(), oracles: [] });
      const replay: WorldReplay = { ...SAMPLE, spec: run.spec, script: run.script };
      const decoding = decodeWorldReplay(encodeWorldReplay(replay));
      if (!decoding.ok) expect(decoding.problems).toEqual([]);
      if (decoding.ok) expect(decoding.replay.script).toEqual(run.script);
    },
  );

  test.each<[string, (text: string) => string, string]>([
    [
      'an action of no kind',
      (text) => text.replace('"kind":"Remap"', '"kind":"Rumap"'),
      'script[4].action.kind',
    ],
    [
      'a field that nobody knows',
      (text) => text.replace('"bytes":40', '"bytes":40,"colour":1'),
      'script[1].action.colour',
    ],
    [
      'a field that is missing',
      (text) => text.replace(',"bytes":40', ''),
      'script[1].action.bytes',
    ],
    [
      'a number out of bounds',
      (text) => text.replace('"bytes":40', '"bytes":70000'),
      'script[1].action.bytes',
    ],
    ['time that runs backwards', (text) => text.replace('"at":4000', '"at":1'), 'script[2].at'],
    [
      'a fault of no kind',
      (text) => text.replace('"sendRate":0', '"sendRat":0'),
      'script[9].action.faults.sendRat',
    ],
    [
      'a setting of no kind',
      (text) => text.replace('"failOpen":true', '"failOpen":"yes"'),
      'spec.proxies[0].config.clusters[0].health.failOpen',
    ],
    ['another schema', (text) => text.replace('"schema": 1', '"schema": 2'), 'schema'],
    [
      'bytes that are none',
      (text) => text.replace('0007ff', '0007f'),
      'spec.proxies[0].config.clusters[0].health.udpProbePayload',
    ],
  ])('with %s is refused with its place', (_, change, path) => {
    const text = encodeWorldReplay(SAMPLE);
    const changed = change(text);
    expect(changed).not.toBe(text);
    const decoding = decodeWorldReplay(changed);
    expect(decoding.ok ? [] : decoding.problems.map((problem) => problem.path)).toContain(path);
  });

  test.each([
    '',
    '[]',
    'null',
    '{}',
    '{"kind":"world"}',
    '{"script":[1,null,"x"],"spec":{"__proto__":{}}}',
  ])('that is hostile is refused: %j', (text) => {
    expect(decodeWorldReplay(text)).toMatchObject({ ok: false });
  });

  test('is told from one of the flow machine', () => {
    expect(isWorldReplay(encodeWorldReplay(SAMPLE))).toBe(true);
    expect(isWorldReplay('{"schema":1,"name":"x"}')).toBe(false);
    expect(isWorldReplay('SOZUTRC')).toBe(false);
  });
});

describe('the verdict', () => {
  test('is fixed where every property holds', () => {
    expect(SAMPLE.outcome).toBe('fixed');
    expect(verifyWorldReplay(SAMPLE)).toEqual({ kind: 'fixed' });
  });

  test.each<[string, Partial<WorldReplay>, string]>([
    ['the property is gone', { property: 'nobody declares this' }, 'no property'],
    ['the run takes another course', { digest: '0'.repeat(16) }, 'its digest is'],
    [
      'the world cannot be',
      {
        script: [{ at: instant(0), action: present(EVERYTHING[1], 'it is there') }],
        spec: { ...SPEC, clients: [] },
      },
      'instead of',
    ],
  ])('is stale where %s', (_, change, reason) => {
    const verdict = verifyWorldReplay({ ...SAMPLE, ...change });
    expect(verdict).toMatchObject({ kind: 'stale', reason: expect.stringContaining(reason) });
  });
});
