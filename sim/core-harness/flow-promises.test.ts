import { describe, expect, test } from 'vitest';
import { Observer } from '../properties.ts';
import type { DrawnCluster, DrawnTerms } from './actions.ts';
import { FlowPromises } from './flow-promises.ts';
import * as properties from './properties.ts';

const MS = 1_000;

const CLUSTER: DrawnCluster = {
  cluster: 0,
  affinityWithPort: false,
  responses: 0,
  requests: 0,
  frontMs: 1_000,
  backMs: 1_000,
  sendProxyProtocol: false,
  everyDatagram: false,
  perIp: 0,
  perSubnet: 0,
};

const TERMS: DrawnTerms = {
  responsesPerRequest: false,
  requestsLinger: false,
  graceMs: 0,
  forwardEmpty: false,
  rate: 0,
  burst: 1,
  creditFactor: 0,
  creditFloor: 0,
};

describe('a flow keeps its credit', () => {
  const limited = { creditFactor: 3, creditFloor: 100 };

  test('up to the larger of floor and factor, over all replies', () => {
    expect(broken({ terms: limited }, (flow) => flow.forwarded(40, 0).returned(120))).toEqual([]);
    expect(broken({ terms: limited }, (flow) => flow.forwarded(9, 0).returned(100))).toEqual([]);
    expect(
      broken({ terms: limited }, (flow) => flow.forwarded(9, 0).returned(60).returned(41)),
    ).toEqual([properties.WITHIN_CREDIT.name]);
  });

  test('until its client spoke twice', () => {
    const run = (flow: Told): Told => flow.forwarded(9, 0).forwarded(9, 1).returned(5_000);
    expect(broken({ terms: limited }, run)).toEqual([]);
  });
});

describe('a flow keeps its rate', () => {
  const slow = { rate: 2, burst: 2 };

  test('at the very microsecond', () => {
    const run = (flow: Told): Told =>
      flow
        .forwarded(1, 0)
        .forwarded(1, 0)
        .forwarded(1, 500 * MS)
        .forwarded(1, 1_000 * MS);
    expect(broken({ terms: slow }, run)).toEqual([]);
  });

  test('and not one before it', () => {
    const run = (flow: Told): Told =>
      flow
        .forwarded(1, 0)
        .forwarded(1, 0)
        .forwarded(1, 500 * MS - 1);
    expect(broken({ terms: slow }, run)).toEqual([properties.WITHIN_RATE.name]);
  });
});

describe('a flow that has all its replies', () => {
  const graced = { graceMs: 10 };

  test('returns late ones within its grace, and closes after it', () => {
    const run = (flow: Told): Told =>
      flow
        .forwarded(1, 0)
        .returned(1, 0)
        .returned(1, 9 * MS)
        .closed('ResponsesReached', 10 * MS);
    expect(broken({ cluster: { responses: 1 }, terms: graced }, run)).toEqual([]);
  });

  test('returns none after it', () => {
    const run = (flow: Told): Told =>
      flow
        .forwarded(1, 0)
        .returned(1, 0)
        .returned(1, 10 * MS);
    expect(broken({ cluster: { responses: 1 }, terms: graced }, run)).toEqual([
      properties.IN_GRACE.name,
    ]);
  });

  test('takes no request more', () => {
    const run = (flow: Told): Told => flow.forwarded(1, 0).returned(1, 0).forwarded(1, 1);
    expect(broken({ cluster: { responses: 1 }, terms: graced }, run)).toEqual([
      properties.ONE_WAY.name,
    ]);
  });
});

describe('a flow closes for a reason that its counts give', () => {
  const lingers = { requestsLinger: true };
  const once = { requests: 1, responses: 1 };

  test.each<[string, Partial<DrawnCluster>, Partial<DrawnTerms>, (flow: Told) => Told, boolean]>([
    [
      'early, with replies to come',
      once,
      lingers,
      (flow) => flow.closed('RequestsReached', 1),
      false,
    ],
    [
      'once they came',
      once,
      lingers,
      (flow) => flow.returned(1).closed('RequestsReached', 1),
      true,
    ],
    [
      'as answered, though spent',
      once,
      lingers,
      (flow) => flow.returned(1).closed('ResponsesReached', 1),
      false,
    ],
    ['as spent, without lingering', once, {}, (flow) => flow.closed('RequestsReached', 1), true],
    [
      'as spent, while requests are left',
      { requests: 2 },
      {},
      (flow) => flow.closed('RequestsReached', 1),
      false,
    ],
    [
      'as answered, without an answer',
      once,
      {},
      (flow) => flow.closed('ResponsesReached', 1),
      false,
    ],
    [
      'before its grace is over',
      once,
      { graceMs: 5 },
      (flow) => flow.returned(1).closed('ResponsesReached', 1),
      false,
    ],
    [
      'as idle, though all came',
      once,
      { graceMs: 5 },
      (flow) => flow.returned(1).closed('Idle', 5 * MS),
      false,
    ],
    ['as idle', once, lingers, (flow) => flow.closed('Idle', 1), true],
    ['by an operator, at any time', once, lingers, (flow) => flow.closed('Killed', 1), true],
    [
      'after one reply of two requests',
      { responses: 1 },
      { responsesPerRequest: true },
      (flow) => flow.forwarded(1, 1).returned(1).closed('ResponsesReached', 1),
      false,
    ],
  ])('%s', (_, cluster, terms, run, isFine) => {
    const names = broken({ cluster, terms }, (flow) => run(flow.forwarded(1, 0)));
    expect(names).toEqual(isFine ? [] : [properties.REASONED.name]);
  });
});

/** The names of the promises that were broken. */
function broken(
  made: { readonly cluster?: Partial<DrawnCluster>; readonly terms: Partial<DrawnTerms> },
  run: (flow: Told) => Told,
): string[] {
  const observer = new Observer();
  observer.beginRun({ high: 0, low: 0 });
  const terms = { ...TERMS, ...made.terms };
  run(new Told(new FlowPromises({ ...CLUSTER, ...made.cluster, terms }, terms, observer)));
  return observer.violations.map(({ name }) => name);
}

/** A flow that is told what happened to it, in a chain. */
class Told {
  private readonly flow: FlowPromises;

  constructor(flow: FlowPromises) {
    this.flow = flow;
  }

  forwarded(bytes: number, now: number): this {
    this.flow.forwarded(bytes, now);
    return this;
  }

  returned(bytes: number, now = 0): this {
    this.flow.returned(bytes, now);
    return this;
  }

  closed(reason: Parameters<FlowPromises['closed']>[0], now: number): this {
    this.flow.closed(reason, now);
    return this;
  }
}
