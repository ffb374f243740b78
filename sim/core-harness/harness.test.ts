import * as fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { DEFAULT } from '../../scenarios/default.ts';
import { SWARM } from '../../scenarios/swarm.ts';
import { assertNever } from '../../core/assert.ts';
import { flowId } from '../../core/brand.ts';
import type { Output } from '../../core/contract.ts';
import { UdpManager } from '../../core/manager.ts';
import { instant } from '../../core/time.ts';
import { Observer, type Violation } from '../properties.ts';
import { seedFromNumber } from '../seed.ts';
import { BACKEND_ADDRESSES, SOURCES } from './pools.ts';
import { AS_MODELLED, INTACT } from './properties.ts';
import { runSeed } from './run.ts';

const STEPS = 250;
const honestPoll: (this: UdpManager) => Output | undefined = Reflect.get(
  UdpManager.prototype,
  'pollOutput',
);

afterEach(() => {
  vi.restoreAllMocks();
});

/** Takes an output and those that follow it in its call, and gives what is seen instead of them. */
type Lie = (first: Output, rest: readonly Output[], chance: number) => readonly Output[];

describe('the shadow model, with every other check off, notices', () => {
  const only = new Set([AS_MODELLED.name]);

  test('that an output is missing', () => {
    expectNoticed((_, rest) => rest, only);
  });

  test('that an output is there twice', () => {
    expectNoticed((first, rest) => [first, first, ...rest], only);
  });

  test('that two outputs changed places', () => {
    expectNoticed((first, [second, ...rest]) => {
      return second === undefined ? [first] : [second, first, ...rest];
    }, only);
  });

  test.each<Output['kind']>([
    'OpenUpstream',
    'SendToBackend',
    'SendToClient',
    'ArmTimer',
    'Metric',
    'CloseFlow',
    'Drop',
  ])('that any field of %s has another value', (kind) => {
    expectNoticed((first, rest, chance) => {
      const lies = first.kind === kind && !('unit' in first) ? liesAbout(first) : [first];
      return [lies[chance % lies.length] ?? first, ...rest];
    }, only);
  });
});

test('payloads are compared byte by byte', () => {
  const only = new Set([INTACT.name]);
  expectNoticed((first, rest) => {
    if (!('payload' in first)) return [first, ...rest];
    const payload = first.payload.slice();
    if (payload.length === 0) return [{ ...first, payload: new Uint8Array(1) }, ...rest];
    payload[payload.length >> 1]! ^= 1;
    return [{ ...first, payload }, ...rest];
  }, only);
});

test('a machine that tells the truth violates nothing', () => {
  const where = { seed: 3, place: 0, chance: 0 };
  expect(violationUnder((first, rest) => [first, ...rest], where).violation).toBeUndefined();
});

/** Tells the lie once in a run, in any run and at any output: it is always noticed. */
function expectNoticed(lie: Lie, only: ReadonlySet<string>): void {
  let told = 0;
  fc.assert(
    fc.property(fc.nat(10_000), fc.nat(200), fc.nat(), (seed, place, chance) => {
      const { violation, isTold } = violationUnder(lie, { seed, place, chance, only });
      if (!isTold) return;
      told += 1;
      expect(only).toContain(violation?.name);
    }),
    { numRuns: 100 },
  );
  expect(told).toBeGreaterThan(10);
}

interface Told {
  readonly violation: Violation | undefined;
  /** Whether the run came to an output about which the lie is not the truth. */
  readonly isTold: boolean;
}

interface Where {
  readonly seed: number;
  /** Outputs before it. */
  readonly place: number;
  /** Which output of its call. */
  readonly chance: number;
  readonly only?: ReadonlySet<string>;
}

/** The run of a seed in which the lie is told once, in the first call from that place on that it fits. */
function violationUnder(lie: Lie, { seed, place, chance, only }: Where): Told {
  let seen = 0;
  let isTold = false;
  const queue: Output[] = [];
  vi.spyOn(UdpManager.prototype, 'pollOutput').mockImplementation(function (this: UdpManager) {
    const queued = queue.shift();
    if (queued !== undefined) return queued;
    const honest = honestPoll.call(this);
    seen += 1;
    if (honest === undefined || isTold || seen <= place) return honest;
    const truth = [honest, ...drain(this)];
    const told = liedAbout(truth, lie, chance);
    isTold = told !== undefined;
    queue.push(...(told ?? truth));
    return queue.shift();
  });
  const scenario = seed % 2 === 0 ? DEFAULT : SWARM;
  const options = { observer: new Observer(), ...(only === undefined ? {} : { only }) };
  const { violation } = runSeed(scenario, seedFromNumber(seed), STEPS, options);
  vi.restoreAllMocks();
  return { violation, isTold };
}

/** All outputs of a call with the lie about one of them, from a drawn one on; undefined if it fits none. */
function liedAbout(truth: readonly Output[], lie: Lie, chance: number): Output[] | undefined {
  for (const offset of truth.keys()) {
    const at = (chance + offset) % truth.length;
    const told = [...truth.slice(0, at), ...lie(truth[at]!, truth.slice(at + 1), chance)];
    if (!sameList(told, truth)) return told;
  }
  return undefined;
}

function* drain(manager: UdpManager): Generator<Output> {
  for (let next = honestPoll.call(manager); next !== undefined; next = honestPoll.call(manager)) {
    yield next;
  }
}

/** The same output with one field changed, each field in turn. */
function liesAbout(output: Exclude<Output, { unit: number }>): readonly Output[] {
  switch (output.kind) {
    case 'OpenUpstream':
      return [{ ...output, flow: flowId(output.flow + 1) }];
    case 'SendToBackend':
      return [
        { ...output, flow: flowId(output.flow + 1) },
        { ...output, prefix: output.prefix?.with(20, 9) ?? Uint8Array.of(0) },
        { ...output, prefix: undefined },
        { ...output, dst: BACKEND_ADDRESSES.find(({ port }) => port !== output.dst.port)! },
      ];
    case 'SendToClient':
      return [
        { ...output, flow: flowId(output.flow + 1) },
        { ...output, from: SOURCES[0] },
        { ...output, dst: SOURCES.find(({ port }) => port !== output.dst.port)! },
      ];
    case 'ArmTimer':
      return [{ ...output, at: instant(output.at + 1) }];
    case 'Metric':
      return liesAboutMetric(output);
    case 'CloseFlow':
      return [
        { ...output, flow: flowId(output.flow + 1) },
        { ...output, reason: output.reason === 'Idle' ? 'Drain' : 'Idle' },
      ];
    case 'Drop':
      return [{ ...output, reason: output.reason === 'Shed' ? 'Invalid' : 'Shed' }];
    default:
      return assertNever(output);
  }
}

function liesAboutMetric({ event }: Extract<Output, { kind: 'Metric' }>): readonly Output[] {
  if (!('bytes' in event)) {
    const kind = event.kind === 'FlowCreated' ? 'FlowEvicted' : 'FlowCreated';
    return [{ kind: 'Metric', event: { kind } }];
  }
  const kind = event.kind === 'DatagramIn' ? 'DatagramOut' : 'DatagramIn';
  return [
    { kind: 'Metric', event: { kind, bytes: event.bytes } },
    { kind: 'Metric', event: { ...event, bytes: event.bytes + 1 } },
  ];
}

function sameList(one: readonly Output[], other: readonly Output[]): boolean {
  return one.length === other.length && one.every((output, place) => same(output, other[place]!));
}

function same(one: Output, other: Output): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
