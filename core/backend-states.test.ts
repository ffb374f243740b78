/** Operators' words on backends, one by one, and any of them in any order against a naive account. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addressOf, backendsOf } from '../test/plane-bench.ts';
import { formatAddress } from './address.ts';
import type { BackendCommand } from './backend-commands.ts';
import { BackendStates, type StatesOutput } from './backend-states.ts';
import type { OperatorState } from './balancing/candidates.ts';
import { instant, seconds } from './time.ts';

const ONE = addressOf('10.0.0.1:53');
const TWO = addressOf('10.0.0.2:53');
const START = instant(0);

describe('a drain', () => {
  test('is directed, told of as flows leave, and over when none is left', () => {
    const { states, outputs } = started();
    expect(states.command({ kind: 'DrainBackend', cluster: 'c', address: ONE }, START)).toEqual({
      ok: true,
      changed: true,
      state: 'draining',
    });
    expect(outputs()).toEqual([state('draining', 1)]);
    for (const flows of [3, 1]) report(states, flows, 1);
    expect(outputs()).toEqual([draining(3), draining(1)]);
    report(states, 0, 1);
    expect(outputs()).toEqual([state('drained', 2), drained(0, 'empty')]);
    report(states, 0, 1);
    expect(outputs(), 'told once').toEqual([]);
    expect(states.nextWake()).toBeUndefined();
  });

  test('is over at its deadline, whatever is left', () => {
    const { states, outputs } = started();
    drain(states, 2);
    report(states, 3, 1);
    outputs();
    expect(states.nextWake()).toEqual({ at: seconds(2), reason: 'backend-drain-deadline' });
    states.handleTimeout(instant(1_999_999));
    expect(outputs()).toEqual([]);
    states.handleTimeout(instant(2_000_000));
    expect(outputs()).toEqual([state('drained', 2), drained(3, 'deadline')]);
    expect(states.nextWake()).toBeUndefined();
  });

  test('may be given another deadline, or none', () => {
    const { states, outputs } = started();
    drain(states, 2);
    expect(drain(states, 2)).toMatchObject({ changed: false });
    expect(drain(states, 5)).toMatchObject({ changed: true });
    expect(states.nextWake()?.at).toBe(seconds(5));
    expect(
      states.command({ kind: 'DrainBackend', cluster: 'c', address: ONE }, START),
    ).toMatchObject({ changed: true });
    expect(states.nextWake()).toBeUndefined();
    expect(outputs()).toEqual([1, 2, 3].map((change) => state('draining', change)));
  });

  test('of a backend that is named by its IPv4-mapped address is that of the IPv4 one', () => {
    const { states, outputs } = started();
    const address = addressOf('[::ffff:10.0.0.1]:53');
    states.command({ kind: 'DrainBackend', cluster: 'c', address }, START);
    expect(outputs()).toEqual([state('draining', 1)]);
  });

  test('that was taken back and begun anew is not ended by word of the first', () => {
    const { states, outputs } = started();
    drain(states, 2);
    states.command({ kind: 'UndrainBackend', cluster: 'c', address: ONE }, START);
    drain(states, 2);
    outputs();
    report(states, 0, 1);
    expect(outputs()).toEqual([]);
    report(states, 0, 3);
    expect(outputs()).toEqual([state('drained', 4), drained(0, 'empty')]);
  });

  test('of the last active backend is refused without force, as is disabling it', () => {
    const { states, outputs } = started();
    drain(states, 2);
    outputs();
    for (const kind of ['DrainBackend', 'DisableBackend'] as const) {
      const refusal = states.command({ kind, cluster: 'c', address: TWO }, START);
      expect(refusal).toMatchObject({ ok: false, error: { kind: 'LastBackend' } });
      expect(outputs()).toEqual([]);
    }
    expect(states.stateOf('c', TWO)).toBe('active');
    const forced = { kind: 'DrainBackend', cluster: 'c', address: TWO, force: true } as const;
    expect(states.command(forced, START)).toMatchObject({ ok: true, state: 'draining' });
    const disable = { kind: 'DisableBackend', cluster: 'c', address: ONE } as const;
    expect(states.command(disable, START), 'it was not active').toMatchObject({ ok: true });
  });
});

test('two entries at one address are one backend: the last one is the last one', () => {
  const states = new BackendStates();
  const [one] = backendsOf(1);
  states.configure([{ cluster: 'c', backends: [one!, { ...one!, id: 'twin' }] }]);
  expect(drain(states, 2)).toMatchObject({ ok: false, error: { kind: 'LastBackend' } });
});

test('what is not there is not found', () => {
  const { states, outputs } = started();
  for (const kind of ['DrainBackend', 'UndrainBackend', 'DisableBackend'] as const) {
    for (const about of [
      { cluster: 'd', address: ONE },
      { cluster: 'c', address: addressOf('10.0.0.9:53') },
    ]) {
      const reply = states.command({ kind, ...about, force: true }, START);
      expect(reply).toMatchObject({ ok: false, error: { kind: 'NotFound' } });
    }
  }
  expect(outputs()).toEqual([]);
});

test('a configuration keeps the state of what stays; what left and comes back is active', () => {
  const { states, outputs } = started();
  drain(states, 2);
  outputs();
  states.configure([{ cluster: 'c', backends: backendsOf(1, 3) }]);
  states.repeat('c', ONE);
  expect(outputs()).toEqual([state('draining', 1)]);
  states.configure([{ cluster: 'c', backends: backendsOf(3) }]);
  expect(states.nextWake(), 'nothing is left to end').toBeUndefined();
  states.configure([{ cluster: 'c', backends: backendsOf(1, 3) }]);
  states.repeat('c', ONE);
  expect(outputs()).toEqual([]);
  expect(states.stateOf('c', ONE)).toBe('active');
});

test('laws: the last is never given up without force, each drain ends once, and its deadline is kept', () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(fc.array(acts, { maxLength: 60, size: 'max' }), (walk) => {
      const model = new Model();
      for (const act of walk) {
        act(model);
        model.check();
      }
      for (const word of model.seen) seen.add(word);
    }),
    { numRuns: 500 },
  );
  expect([...seen].sort(), 'everything happened sometimes').toEqual([
    'LastBackend',
    'NotFound',
    'deadline',
    'empty',
    'forced',
    'undrained',
  ]);
});

const numbers = fc.integer({ min: 1, max: 3 });

const commands: fc.Arbitrary<BackendCommand> = fc
  .record({
    kind: fc.constantFrom('DrainBackend', 'DrainBackend', 'UndrainBackend', 'DisableBackend'),
    n: numbers,
    deadline: fc.option(fc.integer({ min: 0, max: 5 }).map(seconds), { nil: undefined }),
    force: fc.boolean(),
  })
  .map(({ n, ...more }) => ({ cluster: 'c', address: addressOf(`10.0.0.${n}:53`), ...more }));

const acts = fc.oneof(
  { weight: 4, arbitrary: commands.map((command) => (model: Model) => model.command(command)) },
  {
    weight: 4,
    arbitrary: fc.tuple(numbers, fc.nat(2), fc.nat(3)).map(
      ([n, flows, age]) =>
        (model: Model): void =>
          model.report(n, flows, age),
    ),
  },
  {
    weight: 3,
    arbitrary: fc.integer({ min: 0, max: 3 }).map(
      (n) =>
        (model: Model): void =>
          model.wait(n),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.subarray([1, 2, 3], { minLength: 1 }).map(
      (list) =>
        (model: Model): void =>
          model.configure(list),
    ),
  },
);

/** What operators said, in plain maps; it hears what the machine tells and holds it to that. */
class Model {
  readonly seen = new Set<string>();
  private readonly states = new BackendStates();
  private now = START;
  private present: string[] = [];
  /** As directed. */
  private readonly directed = new Map<string, OperatorState>();
  private readonly changes = new Map<string, number>();
  /** Drains that are under way: when they must be over. */
  private readonly drains = new Map<string, number>();

  constructor() {
    this.configure([1, 2, 3]);
  }

  configure(list: readonly number[]): void {
    const backends = backendsOf(...list);
    this.present = backends.map(({ address }) => formatAddress(address));
    this.states.configure([{ cluster: 'c', backends }]);
    for (const name of this.directed.keys()) {
      if (this.present.includes(name)) continue;
      this.directed.delete(name);
      this.drains.delete(name);
    }
  }

  command(command: BackendCommand): void {
    const name = formatAddress(command.address);
    const active = this.active();
    const before = this.stateOf(name);
    const reply = this.states.command(command, this.now);
    const isForced = command.kind !== 'UndrainBackend' && command.force === true;
    if (!reply.ok) return this.refused(reply.error.kind, name, isForced);
    expect(this.present).toContain(name);
    if (command.kind === 'DrainBackend' && reply.changed) {
      this.drains.set(name, this.now + (command.deadline ?? Infinity));
    } else if (reply.changed) this.drains.delete(name);
    const outputs = this.hear();
    expect(outputs.length, 'one directive for a change, none without').toBe(reply.changed ? 1 : 0);
    expect(this.stateOf(name)).toBe(reply.state);
    if (before !== 'active' && reply.state === 'active') this.seen.add('undrained');
    if (active.length > 0 && this.active().length === 0) {
      expect(isForced).toBe(true);
      this.seen.add('forced');
    }
  }

  private refused(kind: string, name: string, isForced: boolean): void {
    this.seen.add(kind);
    expect(this.states.pollOutput(), 'a refused command directs nothing').toBeUndefined();
    if (kind === 'NotFound') expect(this.present).not.toContain(name);
    else expect([this.active(), isForced]).toEqual([[name], false]);
  }

  report(n: number, flows: number, age: number): void {
    const name = `10.0.0.${n}:53`;
    const change = (this.changes.get(name) ?? 0) - (age === 3 ? 1 : 0);
    const about = { cluster: 'c', address: addressOf(name), change, flows };
    const wasDraining = this.drains.has(name) && age < 3;
    this.states.reported({ kind: 'BackendFlows', ...about });
    const kinds = this.hear().map(({ kind }) => kind);
    if (!wasDraining) expect(kinds).toEqual([]);
    else if (flows === 0) expect(kinds).toEqual(['SetBackendState', 'BackendDrained']);
    else expect(kinds).toEqual(['BackendDraining']);
  }

  wait(time: number): void {
    this.now = instant(this.now + seconds(time));
    this.states.handleTimeout(this.now);
    this.hear();
  }

  check(): void {
    let earliest: number | undefined;
    for (const at of this.drains.values()) {
      if (at !== Infinity) earliest = Math.min(at, earliest ?? at);
    }
    expect(this.states.nextWake()?.at).toBe(earliest);
    for (const name of this.present) {
      expect(this.states.stateOf('c', addressOf(name))).toBe(this.stateOf(name));
      expect(this.drains.has(name)).toBe(this.stateOf(name) === 'draining');
    }
  }

  private hear(): StatesOutput[] {
    const outputs = drainOutputs(this.states);
    for (const output of outputs) {
      const name = formatAddress(output.address);
      if (output.kind === 'SetBackendState') {
        expect(output.change, 'each change has a number of its own').toBeGreaterThan(
          Math.max(0, ...this.changes.values()),
        );
        this.changes.set(name, output.change);
        this.directed.set(name, output.state);
      } else if (output.kind === 'BackendDrained') {
        this.seen.add(output.reason);
        const deadline = this.drains.get(name);
        expect(deadline, 'a drain ends once').toBeDefined();
        if (output.reason === 'deadline') expect(deadline).toBeLessThanOrEqual(this.now);
        this.drains.delete(name);
      }
    }
    return outputs;
  }

  private stateOf(name: string): OperatorState {
    return this.directed.get(name) ?? 'active';
  }

  private active(): string[] {
    return this.present.filter((name) => this.stateOf(name) === 'active');
  }
}

interface Started {
  readonly states: BackendStates;
  /** Since the last call. */
  readonly outputs: () => StatesOutput[];
}

function started(): Started {
  const states = new BackendStates();
  states.configure([{ cluster: 'c', backends: backendsOf(1, 2) }]);
  return { states, outputs: () => drainOutputs(states) };
}

function drainOutputs(states: BackendStates): StatesOutput[] {
  const outputs: StatesOutput[] = [];
  for (let one = states.pollOutput(); one !== undefined; one = states.pollOutput()) {
    outputs.push(one);
  }
  return outputs;
}

function drain(states: BackendStates, deadline: number): ReturnType<BackendStates['command']> {
  const about = { cluster: 'c', address: ONE, deadline: seconds(deadline) };
  return states.command({ kind: 'DrainBackend', ...about }, START);
}

function report(states: BackendStates, flows: number, change: number): void {
  states.reported({ kind: 'BackendFlows', cluster: 'c', address: ONE, change, flows });
}

function state(wanted: OperatorState, change: number): StatesOutput {
  return { kind: 'SetBackendState', cluster: 'c', address: ONE, state: wanted, change };
}

function draining(flowsLeft: number): StatesOutput {
  return { kind: 'BackendDraining', cluster: 'c', address: ONE, flowsLeft };
}

function drained(flowsLeft: number, reason: 'empty' | 'deadline'): StatesOutput {
  return { kind: 'BackendDrained', cluster: 'c', address: ONE, flowsLeft, reason };
}
