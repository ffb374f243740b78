/** Two planes and what is heard of them: histories as they should be, and as a joint would make them that is not careful. */
import { describe, expect, test } from 'vitest';
import { listenerId, requestId } from '../../../core/brand.ts';
import type { Directive, Report } from '../../../core/directives.ts';
import type { FlowLine, FlowQuery } from '../../../core/flow-commands.ts';
import type { PlaneInput } from '../../../core/plane-contract.ts';
import { instant, microseconds } from '../../../core/time.ts';
import {
  backendAddress,
  backendEntry,
  clientAddress,
  configOf,
  listenerOf,
  populationOf,
  proxyOf,
  QUIET_LINK,
  SHORT_PHASES,
} from '../builders.ts';
import type { Told } from '../history.ts';
import type { WorldSpec } from '../spec.ts';
import { objectionOf, told, turn } from './hand-made.ts';
import { PLANE_GROUP } from './plane-group.ts';

const CONFIG = configOf({});
const SPEC: WorldSpec = {
  phases: SHORT_PHASES,
  link: QUIET_LINK,
  proxies: [proxyOf(CONFIG, { workers: { count: 2, steer: 'tuple' } })],
  ...populationOf({ clients: 2, backends: 1 }),
  withinTolerance: true,
};
const LISTENER = { listener: listenerId(0), address: listenerOf({}).address };
const OPENED: Report = { kind: 'ListenerOpened', generation: 1, ...LISTENER };
const STOPPED: Report = { kind: 'Stopped', generation: 1, flowsClosed: 2 };

const LINE: FlowLine = {
  name: '0.1',
  listener: LISTENER.address,
  cluster: 'cluster',
  client: clientAddress(0),
  local: undefined,
  backend: backendEntry(0),
  phase: 'Established',
  requests: 1,
  responses: 1,
  age: microseconds(1),
  idleIn: microseconds(1),
};

describe('reports', () => {
  test('may be heard once both planes have made them, with the sum of their figures', () => {
    expect(
      objection(
        said(0, OPENED),
        said(1, OPENED),
        heard(OPENED),
        heard(OPENED),
        said(0, flowsLeft(3)),
        said(1, flowsLeft(1)),
        said(1, flowsLeft(0)),
        heard(flowsLeft(4)),
        heard(flowsLeft(3)),
        said(1, closed(1)),
        said(0, closed(2)),
        heard(closed(3)),
        said(0, STOPPED),
        said(1, STOPPED),
        heard({ ...STOPPED, flowsClosed: 4 }),
      ),
    ).toBeUndefined();
  });

  test.each<[string, readonly Told[]]>([
    ['a listener that is open in one plane only', [said(0, OPENED), heard(OPENED)]],
    ['a stop that is over in one plane only', [said(1, STOPPED), heard(STOPPED)]],
    ['a stop with the flows of one plane', [said(0, STOPPED), said(1, STOPPED), heard(STOPPED)]],
    ['a drain of which one plane has spoken', [said(0, flowsLeft(0)), heard(flowsLeft(0))]],
    [
      'a drain with the flows of one plane',
      [said(0, flowsLeft(2)), said(1, flowsLeft(0)), heard(flowsLeft(0))],
    ],
    ['a listener closed by one plane', [said(0, closed(2)), heard(closed(2))]],
  ])('are not heard of %s', (_, history) => {
    expect(objection(...history)).toContain('a control plane hears what all of its planes say');
  });

  test('are heard once where there is one end', () => {
    const stop = heard({ ...STOPPED, flowsClosed: 4 });
    expect(objection(said(0, STOPPED), said(1, STOPPED), stop, stop)).toContain('once');
  });
});

describe('a plane that drained', () => {
  const closes = told('DataOutput', {
    process: 1,
    plane: 0,
    output: { kind: 'CloseListener', listener: LISTENER.listener },
  });

  test('leaves when no plane has flows, or when it is told to', () => {
    expect(
      objection(serving(1, 2), serving(1, 0), hears({ kind: 'Flushed' }), closes),
    ).toBeUndefined();
    const stop = { generation: 1, directive: { kind: 'Stop' } } as const;
    expect(
      objection(serving(1, 2), hears({ kind: 'Directed', message: stop }), closes),
    ).toBeUndefined();
    const timer = told('DataTimeout', { process: 1, plane: 0, now: instant(0) });
    expect(objection(serving(1, 2), hears({ kind: 'Flushed' }), timer, closes)).toBeUndefined();
  });

  test('does not leave others with flows', () => {
    expect(objection(serving(1, 2), hears({ kind: 'Flushed' }), closes)).toContain(
      'stays while others',
    );
  });

  function serving(plane: number, flows: number): Told {
    return turn({ plane, flows });
  }

  function hears(input: PlaneInput): Told {
    return told('DataInput', { process: 1, plane: 0, input, now: instant(0) });
  }
});

describe('answers', () => {
  const all: FlowQuery = { kind: 'ListFlows', filter: {}, limit: 9 };

  test('are of all planes that were asked, and whole', () => {
    expect(
      objection(asked(all), said(0, list(2)), said(1, list(1)), heard(list(3))),
    ).toBeUndefined();
    const part = { ...all, slots: 8 };
    expect(objection(asked(part), said(1, list(2)), heard(list(2)))).toBeUndefined();
    expect(objection(asked(all), said(0, list(2)), heard(list(2)))).toContain('hears what all');
    expect(objection(asked(all), said(0, list(2)), said(1, list(1)), heard(list(2)))).toContain(
      'hears',
    );
  });

  test('to a name are about the flow of that name', () => {
    const query: FlowQuery = { kind: 'KillFlow', flow: '0.7' };
    const killed = (name: string): Report => ({
      kind: 'Answered',
      request: requestId(1),
      answer: { kind: 'Killed', flow: { ...LINE, name } },
    });
    expect(objection(asked(query), said(1, killed('0.3')), heard(killed('0.7')))).toBeUndefined();
    expect(objection(asked(query), said(0, killed('0.3')), heard(killed('0.6')))).toContain(
      'by name',
    );
  });

  function asked(query: FlowQuery): Told {
    return directed({ kind: 'Query', request: requestId(1), query });
  }

  function list(matched: number): Report {
    return {
      kind: 'Answered',
      request: requestId(1),
      answer: { kind: 'Flows', flows: [], matched },
    };
  }
});

describe('a cap', () => {
  test('is shared, and the planes need not hear of another at the same time', () => {
    expect(
      objection(
        directed(cap('AddListener', 5)),
        given(0, 'AddListener', 3),
        given(1, 'AddListener', 2),
        directed(cap('UpdateListener', 9), 2),
        given(1, 'UpdateListener', 4, 2),
        given(0, 'UpdateListener', 5, 2),
      ),
    ).toBeUndefined();
  });

  test('is never exceeded, nor is any of it lost', () => {
    const wish = directed(cap('AddListener', 5));
    const [two, three] = [given(0, 'AddListener', 2), given(0, 'AddListener', 3)];
    expect(objection(wish, three, given(1, 'AddListener', 3))).toContain('no more flows than');
    expect(objection(wish, two, given(1, 'AddListener', 2))).toContain('the whole cap');
  });

  function cap(kind: 'AddListener' | 'UpdateListener', maxFlows: number): Directive {
    return { kind, listener: LISTENER.listener, config: listenerOf({ maxFlows }) };
  }

  function given(
    plane: number,
    kind: 'AddListener' | 'UpdateListener',
    maxFlows: number,
    generation = 1,
  ): Told {
    const message = { generation, directive: cap(kind, maxFlows) };
    const input = { kind: 'Directed', message } as const;
    return told('DataInput', { process: 1, plane, input, now: instant(0) });
  }
});

function objection(...history: readonly Told[]): string | undefined {
  const started = told('Started', { process: 1, proxy: 0, config: CONFIG, descriptors: 0 });
  return objectionOf(PLANE_GROUP, [started, ...history], SPEC);
}

function said(plane: number, report: Report): Told {
  return told('DataOutput', { process: 1, plane, output: { kind: 'Report', report } });
}

function heard(report: Report): Told {
  return told('ControlInput', { process: 1, input: { kind: 'Reported', report }, now: instant(0) });
}

function directed(directive: Directive, generation = 1): Told {
  const message = { generation, directive };
  return told('ControlOutput', { process: 1, output: { kind: 'Direct', message } });
}

function flowsLeft(flows: number): Report {
  return { kind: 'BackendFlows', cluster: 'c', address: backendAddress(0), change: 1, flows };
}

function closed(flowsClosed: number): Report {
  return { kind: 'ListenerClosed', generation: 2, ...LISTENER, flowsClosed };
}
