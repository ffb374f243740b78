/** The loop over the control plane: order, and who is heard when. */
import { expect, test } from 'vitest';
import { clusterSettings, configOf, PlaneBench } from '../test/plane-bench.ts';
import type { ProbeAnswer } from './health/probe-contract.ts';
import { healthSettings } from './health/settings.ts';
import { ControlPlane } from './control-plane.ts';
import { ControlPump } from './control-pump.ts';
import { instant, seconds, type Instant } from './time.ts';

const HEALTH = healthSettings({ fall: 1, probeInterval: seconds(1), probeTimeout: seconds(1) });
const CONFIG = configOf([clusterSettings({ health: HEALTH })]);

test('directives come first, and the turn that they opened ends once for each input', () => {
  const { calls, pump } = bench();
  pump.configure(CONFIG);
  expect(calls).toEqual([
    'direct SetCluster',
    'direct AddListener',
    'probe 1',
    'probe 2',
    'event Availability',
    'end turn',
    'wake 1',
  ]);
});

test('a probe answered inside the call that starts it is heard when that input is done with', () => {
  const { calls, pump } = bench({ answer: 'refused' });
  pump.configure(CONFIG);
  expect(calls.slice(5)).toEqual([
    'end turn',
    'direct SetHealth',
    'event HealthChanged',
    'event Availability',
    'end turn',
    'direct SetHealth',
    'event HealthChanged',
    'event Availability',
    'event NoAvailableBackends',
    'end turn',
    expect.stringMatching(/^wake 0\.\d+$/),
  ]);
});

test('an input without a directive ends no turn, and the timer is armed anew only for another instant', () => {
  const { calls, pump } = bench();
  pump.configure(CONFIG);
  calls.length = 0;
  pump.probeAnswered(99, 'ok');
  expect(calls).toEqual([]);
  pump.timer();
  expect(calls, 'the timer that fired is gone, early as it was').toEqual(['wake 1']);
});

test('a stop cancels what is in flight once the data plane says that it has stopped', () => {
  const { calls, pump } = bench();
  pump.configure(CONFIG);
  calls.length = 0;
  pump.stop();
  expect(calls).toEqual(['direct Stop', 'end turn']);
  pump.report({ kind: 'Stopped', generation: 1, flowsClosed: 0 });
  expect(calls.slice(2)).toEqual(['cancel 1', 'cancel 2', 'wake never']);
});

test('a data plane’s pump tells its reports when the turn is over: whoever hears may direct at once', () => {
  const plane = new PlaneBench(configOf());
  plane.turn(() => plane.client('a'));
  plane.reports.length = 0;
  plane.turn(() => {
    plane.pump.refused(plane.socket(1));
    expect(plane.reports).toEqual([]);
  });
  expect(plane.reports).toMatchObject([{ kind: 'BackendRefused' }]);
});

function bench({ answer }: { readonly answer?: ProbeAnswer } = {}): {
  readonly calls: string[];
  readonly pump: ControlPump;
} {
  const calls: string[] = [];
  const control = new ControlPlane({ randomSeed: { high: 1, low: 2 } });
  const pump: ControlPump = new ControlPump(
    control,
    {
      now: () => instant(0),
      probe: ({ probe }) => {
        calls.push(`probe ${probe}`);
        if (answer !== undefined) pump.probeAnswered(probe, answer);
      },
      cancelProbe: (probe) => void calls.push(`cancel ${probe}`),
      wakeAt: (at: Instant | undefined) =>
        void calls.push(`wake ${at === undefined ? 'never' : at / 1_000_000}`),
      event: ({ kind }) => void calls.push(`event ${kind}`),
    },
    {
      direct: ({ directive }) => void calls.push(`direct ${directive.kind}`),
      endTurn: () => void calls.push('end turn'),
    },
  );
  return { calls, pump };
}
