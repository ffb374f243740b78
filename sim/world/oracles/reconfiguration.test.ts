import { expect, test } from 'vitest';
import { listenerId, requestId } from '../../../core/brand.ts';
import type { Command } from '../../../core/commands.ts';
import type { Config } from '../../../core/config.ts';
import type { ControlInput } from '../../../core/control-contract.ts';
import { ControlPlane } from '../../../core/control-plane.ts';
import { newCounters } from '../../../core/metrics.ts';
import { instant } from '../../../core/time.ts';
import { backendAddress, backendList, configOf, listenerOf, proxyAddress } from '../builders.ts';
import type { History, Told } from '../history.ts';
import { objectionOf, told } from './hand-made.ts';
import { RECONFIGURATION } from './reconfiguration.ts';

const A = configOf({ backends: backendList(2) });
const B: Config = {
  ...configOf({ backends: backendList(3), responses: 1 }, { maxFlows: 7 }),
  listeners: [
    listenerOf({ maxFlows: 7 }),
    listenerOf({ address: { ...proxyAddress(0), port: 54 } }),
  ],
};
const COUNTED = counted();

test('whatever the way to a configuration, its outcome is accepted', () => {
  const ways: Command[][] = [
    [reload(A)],
    [reload(A), reload(B)],
    [reload(B), reload(A), reload(A)],
    [reload(A), { kind: 'RemoveBackend', cluster: 'cluster', address: backendAddress(1) }],
    [reload(A), { kind: 'RemoveCluster', cluster: 'cluster' }, reload(B)],
    [reload(B), { kind: 'DeactivateListener', address: listenerOf({}).address }],
    [
      reload(A),
      { kind: 'UpdateListener', address: listenerOf({}).address, patch: { maxFlows: 3 } },
    ],
  ];
  for (const way of ways)
    expect(objectionOf(RECONFIGURATION, [...run(way), COUNTED])).toBeUndefined();
});

test('a directive that was lost, or told twice with another outcome, is found', () => {
  const history = run([reload(A), reload(B)]);
  const directives = history.flatMap(({ kind, fact }, at) =>
    kind === 'ControlOutput' &&
    fact.output.kind === 'Direct' &&
    /^(SetCluster|AddListener|UpdateListener)$/.test(fact.output.message.directive.kind)
      ? [at]
      : [],
  );
  const last = directives.slice(-3);
  expect(last.length).toBe(3);
  for (const at of last)
    expect(objectionOf(RECONFIGURATION, [...history.toSpliced(at, 1), COUNTED])).toContain('fresh');
});

test('a refused command changes nothing', () => {
  const remove: Command = { kind: 'RemoveCluster', cluster: 'other' };
  expect(objectionOf(RECONFIGURATION, [...run([reload(A), remove]), COUNTED])).toBeUndefined();
});

test('a reload of what there is directs nothing', () => {
  const [settings] = A.clusters;
  if (settings === undefined) throw new Error('there is a cluster');
  const directive = { kind: 'SetCluster', settings } as const;
  const needless = told('ControlOutput', {
    process: 1,
    output: { kind: 'Direct', message: { generation: 2, directive } },
  });
  const again = run([reload(A), reload(A)]);
  expect(objectionOf(RECONFIGURATION, again)).toBeUndefined();
  const disturbed = again.toSpliced(-1, 0, needless);
  expect(objectionOf(RECONFIGURATION, disturbed)).toContain('moved something');
});

test('a listener that does not open for good is as if it were deactivated', () => {
  const { address } = listenerOf({});
  const about = { generation: 1, listener: listenerId(0), address, retry: undefined };
  const failed = {
    kind: 'Reported',
    report: { kind: 'ListenerFailed', ...about, errno: 'EACCES' },
  } as const;
  expect(objectionOf(RECONFIGURATION, [...run([reload(A)], failed), COUNTED])).toBeUndefined();
});

/** What a control plane says to these commands, and then to another input. */
function run(commands: readonly Command[], then?: ControlInput): History {
  const plane = new ControlPlane({ randomSeed: { high: 1, low: 2 } });
  const inputs: ControlInput[] = commands.map((command, number) => {
    return { kind: 'Command', request: requestId(number + 1), command };
  });
  if (then !== undefined) inputs.push(then);
  const history: Told[] = [];
  for (const input of inputs) {
    history.push(told('ControlInput', { process: 1, input, now: instant(0) }));
    plane.handleInput(input, instant(0));
    for (let output = plane.pollOutput(); output !== undefined; output = plane.pollOutput())
      history.push(told('ControlOutput', { process: 1, output }));
  }
  return history;
}

function reload(config: Config): Command {
  return { kind: 'Reload', config };
}

function counted(): Told {
  const kernelIn = {
    received: 0,
    overflowed: 0,
    strange: 0,
    unheard: 0,
    taken: 0,
    abandoned: 0,
    refusals: 0,
  };
  const kernelOut = {
    accepted: 0,
    failedLate: 0,
    untold: 0,
    stalled: 0,
    left: 0,
    leaving: 0,
    leavingBefore: 0,
  };
  const waiting = {
    waiting: 0,
    kernelWaiting: 0,
    probes: { taken: 0, accepted: 0, failedLate: 0 },
  };
  return told('Counted', { process: 1, counters: newCounters(), ...waiting, kernelIn, kernelOut });
}
