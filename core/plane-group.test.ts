/** What several data planes report, told as one does. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addressOf, backendsOf, clusterSettings, listenerConfig } from '../test/plane-bench.ts';
import { listenerId } from './brand.ts';
import type { Directive, GeneratedDirective, Report } from './directives.ts';
import { PlaneGroup } from './plane-group.ts';
import { instant, milliseconds, seconds } from './time.ts';

const ADDRESS = addressOf('10.0.0.53:53');
const BACKEND = addressOf('10.0.0.1:53');
const LISTENER = { listener: listenerId(0), address: ADDRESS };

describe('what is granted to all', () => {
  test('flow budgets add up to the cap, whatever it is and however many planes there are', () => {
    fc.assert(
      fc.property(
        fc.nat(1_000_000),
        fc.integer({ min: 1, max: 64 }),
        fc.boolean(),
        (cap, count, added) => {
          const { group, sent } = rig(count);
          const kind = added ? 'AddListener' : 'UpdateListener';
          const config = listenerConfig({ maxFlows: cap });
          group.direct(message({ kind, listener: listenerId(0), config }));
          const shares = sent.map(({ directive }) =>
            directive.kind === kind ? directive.config.maxFlows : Number.NaN,
          );
          expect(shares).toHaveLength(count);
          expect(shares.reduce((sum, one) => sum + one, 0)).toBe(cap);
          expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1);
        },
      ),
    );
  });

  test('lines of the access log are shared, its sampling and its end are everybody’s', () => {
    const { group, sent } = rig(3);
    group.direct(message({ kind: 'SetAccessLog', settings: { oneIn: 7, linesPerSecond: 100 } }));
    group.direct(message({ kind: 'SetAccessLog', settings: undefined }));
    expect(sent.map(({ directive }) => directive)).toEqual([
      ...[34, 33, 33].map((linesPerSecond) => ({
        kind: 'SetAccessLog',
        settings: { oneIn: 7, linesPerSecond },
      })),
      ...Array.from({ length: 3 }, () => ({ kind: 'SetAccessLog', settings: undefined })),
    ]);
  });

  test('a turn ends for every plane', () => {
    const { group, ended } = rig(3);
    group.endTurn();
    expect(ended).toEqual([0, 1, 2]);
  });
});

describe('listeners', () => {
  const opened: Report = { kind: 'ListenerOpened', generation: 1, ...LISTENER };
  const failed: Report = {
    kind: 'ListenerFailed',
    generation: 1,
    ...LISTENER,
    errno: 'EADDRNOTAVAIL',
    retry: seconds(1),
  };

  test('one is open once all planes have it open', () => {
    const { group, told } = withListener(3);
    group.heard(2, opened);
    group.heard(0, opened);
    expect(told).toEqual([]);
    group.heard(1, opened);
    expect(told).toEqual([opened]);
  });

  test('a failure is told once while it lasts, and its end when the last plane is open', () => {
    const { group, told } = withListener(3);
    group.heard(0, failed);
    group.heard(1, { ...failed, errno: 'EADDRINUSE' });
    group.heard(2, opened);
    group.heard(0, opened);
    expect(told).toEqual([failed]);
    group.heard(1, opened);
    expect(told).toEqual([failed, opened]);
    group.heard(2, failed);
    expect(told, 'a socket that was given up').toEqual([failed, opened, failed]);
  });

  test('the first failure that is final ends it for all', () => {
    const { group, told } = withListener(3);
    const final = { ...failed, retry: undefined };
    group.heard(0, opened);
    group.heard(1, failed);
    group.heard(2, final);
    group.heard(1, final);
    group.heard(1, opened);
    expect(told).toEqual([failed, final]);
  });

  test('one is closed once all planes have closed it, with the flows of all', () => {
    const { group, told } = withListener(3);
    group.direct(message({ kind: 'RemoveListener', listener: listenerId(0) }, 2));
    for (const plane of [1, 0, 2]) {
      expect(told).toEqual([]);
      group.heard(plane, closed(2, plane + 1));
    }
    expect(told).toEqual([closed(2, 6)]);
  });

  test('a number that is used again is another listener, wherever the planes are', () => {
    const { group, told } = withListener(2);
    group.direct(message({ kind: 'RemoveListener', listener: listenerId(0) }, 2));
    group.direct(message(addListener(), 2));
    group.heard(0, opened);
    group.heard(0, closed(2, 1));
    group.heard(0, { ...opened, generation: 2 });
    expect(told).toEqual([]);
    group.heard(1, opened);
    group.heard(1, closed(2, 1));
    expect(told).toEqual([opened, closed(2, 2)]);
    group.heard(1, { ...opened, generation: 2 });
    expect(told.at(-1)).toEqual({ ...opened, generation: 2 });
  });

  function closed(generation: number, flowsClosed: number): Report {
    return { kind: 'ListenerClosed', generation, ...LISTENER, flowsClosed };
  }
});

describe('a soft stop', () => {
  test('is one that planes end together: no socket leaves before all are without flows', () => {
    const { group, sent, told } = rig(2);
    const drained: Report = { kind: 'Drained', generation: 3 };
    group.direct(message({ kind: 'Drain', deadline: instant(5) }, 3));
    const drain = { kind: 'Drain', deadline: instant(5), together: true };
    expect(sent.splice(0).map(({ directive }) => directive)).toEqual([drain, drain]);
    group.heard(1, drained);
    group.heard(1, drained);
    expect(sent, 'one that says it twice').toEqual([]);
    group.heard(0, drained);
    const stop = { generation: 3, directive: { kind: 'Stop' } };
    expect(sent).toEqual([stop, stop]);
    expect(told).toEqual([]);
  });

  test('and any other is over when it is over everywhere, and is told once with the flows of all', () => {
    const { group, told } = rig(3);
    for (const plane of [2, 0, 1]) {
      expect(told).toEqual([]);
      group.heard(plane, { kind: 'Stopped', generation: 4, flowsClosed: plane + 1 });
    }
    expect(told).toEqual([{ kind: 'Stopped', generation: 4, flowsClosed: 6 }]);
  });
});

describe('backends', () => {
  test('a drain has the flows of all planes left, and is told once all have said how many', () => {
    const { group, told } = rig(3);
    group.direct(message(stateSet('draining', 1)));
    group.heard(0, flowsLeft(1, 0));
    group.heard(1, flowsLeft(1, 2));
    expect(told).toEqual([]);
    group.heard(2, flowsLeft(1, 3));
    group.heard(1, flowsLeft(1, 0));
    group.heard(2, flowsLeft(1, 0));
    expect(told).toEqual([flowsLeft(1, 5), flowsLeft(1, 3), flowsLeft(1, 0)]);
  });

  test('a state that is told again begins nothing anew, another change does', () => {
    const { group, told } = rig(2);
    group.direct(message(stateSet('draining', 1)));
    group.heard(0, flowsLeft(1, 4));
    group.direct(message(stateSet('draining', 1)));
    group.heard(1, flowsLeft(1, 0));
    expect(told).toEqual([flowsLeft(1, 4)]);
    group.direct(message(stateSet('draining', 2)));
    group.heard(0, flowsLeft(1, 3));
    group.heard(1, flowsLeft(2, 0));
    expect(told, 'words of the drain before').toEqual([flowsLeft(1, 4)]);
    group.heard(0, flowsLeft(2, 3));
    expect(told.at(-1)).toEqual(flowsLeft(2, 3));
  });

  test.each<[string, Directive]>([
    ['a state that is none', stateSet('active', 2)],
    ['a cluster without the backend', { kind: 'SetCluster', settings: cluster(2) }],
    ['the end of the cluster', { kind: 'RemoveCluster', cluster: 'c' }],
  ])('what is said of a drain is nobody’s after %s', (_, directive) => {
    const { group, told } = rig(2);
    group.direct(message(stateSet('draining', 1)));
    group.heard(0, flowsLeft(1, 1));
    group.direct(message(directive));
    group.heard(1, flowsLeft(1, 0));
    expect(told).toEqual([]);
  });

  test('a drain outlives a change of its cluster, and of another', () => {
    const { group, told } = rig(2);
    group.direct(message(stateSet('draining', 1)));
    group.heard(0, flowsLeft(1, 1));
    group.direct(message({ kind: 'SetCluster', settings: cluster(1, 2) }));
    group.direct(message({ kind: 'RemoveCluster', cluster: 'd' }));
    group.heard(1, flowsLeft(1, 2));
    expect(told).toEqual([flowsLeft(1, 3)]);
  });

  test('flows of two planes that were refused are two flows', () => {
    const { group, told } = rig(3);
    const refused: Report = { kind: 'BackendRefused', cluster: 'c', address: BACKEND, flow: 5 };
    for (const plane of [0, 1, 2]) group.heard(plane, refused);
    expect(told.map((one) => (one.kind === 'BackendRefused' ? one.flow : undefined))).toEqual([
      15, 16, 17,
    ]);
  });

  test('traffic, failures of sockets and lines that were left out pass as they are', () => {
    const passing: Report[] = [
      { kind: 'BackendTraffic', cluster: 'c', address: BACKEND, forwarded: 3, answered: 2 },
      { kind: 'UpstreamFailed', listener: listenerId(0), errno: 'EMFILE', source: undefined },
      { kind: 'FlowEndsSuppressed', suppressed: 3 },
    ];
    const { group, told } = rig(2);
    for (const [plane, report] of passing.entries()) group.heard(plane % 2, report);
    expect(told).toEqual(passing);
  });

  function cluster(...numbers: number[]): ReturnType<typeof clusterSettings> {
    return clusterSettings({ backends: backendsOf(...numbers) });
  }

  function stateSet(state: 'active' | 'draining', change: number): Directive {
    return { kind: 'SetBackendState', cluster: 'c', address: BACKEND, state, change };
  }

  function flowsLeft(change: number, flows: number): Report {
    return { kind: 'BackendFlows', cluster: 'c', address: BACKEND, change, flows };
  }
});

test('a plane alone hears and is heard word for word', () => {
  const { group, sent, told } = rig(1);
  const directive = message(addListener());
  const report: Report = { kind: 'BackendRefused', cluster: 'c', address: BACKEND, flow: 5 };
  group.direct(directive);
  group.heard(0, report);
  expect(sent[0]).toBe(directive);
  expect(told[0]).toBe(report);
});

test('a group without a plane is a mistake', () => {
  for (const count of [0, -1, 1.5]) expect(() => rig(count)).toThrow('a group has a data plane');
});

function rig(count: number): {
  readonly group: PlaneGroup;
  readonly sent: GeneratedDirective[];
  readonly told: Report[];
  readonly ended: number[];
} {
  const sent: GeneratedDirective[] = [];
  const told: Report[] = [];
  const ended: number[] = [];
  const group = new PlaneGroup(count, {
    direct: (_, one) => void sent.push(one),
    report: (report) => void told.push(report),
    endTurn: (plane) => void ended.push(plane),
  });
  return { group, sent, told, ended };
}

function withListener(count: number): ReturnType<typeof rig> {
  const made = rig(count);
  made.group.direct(message(addListener()));
  return made;
}

function addListener(): Directive {
  const config = listenerConfig({ bindRetry: milliseconds(100) });
  return { kind: 'AddListener', listener: listenerId(0), config };
}

function message(directive: Directive, generation = 1): GeneratedDirective {
  return { generation, directive };
}
