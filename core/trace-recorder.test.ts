import { beforeEach, describe, expect, test } from 'vitest';
import { HEADER, traceOf } from '../test/recorded-world.ts';
import { ipv4 } from './address.ts';
import { listenerId, requestId } from './brand.ts';
import type { ControlInput, ControlMachine, ControlOutput } from './control-contract.ts';
import type { GeneratedDirective, Report } from './directives.ts';
import type { DataMachine, PlaneInput, PlaneOutput } from './plane-contract.ts';
import { instant, type Instant } from './time.ts';
import { decodeTrace, entriesOf, type Trace, type TraceEntry } from './trace.ts';
import { Recorder } from './trace-recorder.ts';

const CLIENT: PlaneInput = {
  kind: 'ClientArrived',
  listener: listenerId(0),
  src: ipv4(0x0a000001, 1_000),
  local: undefined,
  payload: Uint8Array.of(1, 2, 3),
};
const FLUSHED: PlaneInput = { kind: 'Flushed' };
const STOP: GeneratedDirective = { generation: 1, directive: { kind: 'Stop' } };
const REPORT: Report = { kind: 'Stopped', generation: 1, flowsClosed: 0 };

/** A machine that answers each input with what the test laid out for it. */
class Puppet<I, O> {
  readonly heard: [I | 'timeout', Instant][] = [];
  next: O[] = [];
  wake: { readonly at: Instant; readonly reason: 'sweep' } | undefined;
  fails = false;

  handleInput(input: I, now: Instant): void {
    this.heard.push([input, now]);
    if (this.fails) throw new Error('on its strings');
  }

  handleTimeout(now: Instant): void {
    this.heard.push(['timeout', now]);
  }

  pollOutput(): O | undefined {
    return this.next.shift();
  }

  pollTimeout(): { readonly at: Instant; readonly reason: 'sweep' } | undefined {
    return this.wake;
  }
}

let data: Puppet<PlaneInput, PlaneOutput>;
let control: Puppet<ControlInput, ControlOutput>;
let recorder: Recorder;
let dataTap: DataMachine;
let controlTap: ControlMachine;
let snapshots: Uint8Array[];

beforeEach(() => setUp(10_000));

describe('a tap', () => {
  test('passes everything on as it is', () => {
    const output: PlaneOutput = { kind: 'CloseListener', listener: listenerId(3) };
    data.next = [output];
    data.wake = { at: instant(9), reason: 'sweep' };
    dataTap.handleInput(CLIENT, instant(5));
    dataTap.handleTimeout(instant(6));
    expect(data.heard).toEqual([
      [CLIENT, 5],
      ['timeout', 6],
    ]);
    expect([dataTap.pollOutput(), dataTap.pollOutput()]).toEqual([output, undefined]);
    expect(dataTap.pollTimeout()).toBe(data.wake);
    controlTap.handleTimeout(instant(7));
    expect(control.heard).toEqual([['timeout', 7]]);
  });

  test('notes inputs of both machines in order, with their times, one of them earlier', () => {
    turn(CLIENT, 1_000);
    controlTap.handleTimeout(instant(1_500));
    controlTap.pollOutput();
    turn(FLUSHED, 1_200);
    const noted = entries().map(({ step, at, finished }) => [step.input.kind, at, finished]);
    expect(noted).toEqual([
      ['ClientArrived', 1_000, true],
      ['Timeout', 1_500, true],
      ['Flushed', 1_200, true],
    ]);
  });
});

describe('the digest of an input', () => {
  test('changes with any output, its order, and the wake that was asked for', () => {
    const close = (listener: number): PlaneOutput => {
      return { kind: 'CloseListener', listener: listenerId(listener) };
    };
    const digests = [[], [close(1)], [close(2)], [close(1), close(2)], [close(2), close(1)]].map(
      (outputs) => digestOf(outputs, undefined),
    );
    digests.push(digestOf([], instant(4)), digestOf([], instant(5)));
    expect(new Set(digests).size).toBe(digests.length);
  });

  test('has the first wake that was asked for, and no later one', () => {
    const once = digestOf([], instant(4));
    setUp(10_000);
    data.wake = { at: instant(4), reason: 'sweep' };
    turn(CLIENT, 1);
    data.wake = { at: instant(5), reason: 'sweep' };
    dataTap.pollTimeout();
    expect(entries()[0]?.digest).toBe(once);
  });

  test('of one that failed is not there', () => {
    data.fails = true;
    expect(() => dataTap.handleInput(CLIENT, instant(1))).toThrow('on its strings');
    expect(entries()).toMatchObject([{ finished: false, digest: 0 }]);
  });
});

describe('a message between the machines', () => {
  test('is only a mark when it is the next that was said', () => {
    control.next = [{ kind: 'Direct', message: STOP }];
    controlTap.handleInput(
      { kind: 'Command', request: requestId(1), command: { kind: 'HardStop' } },
      instant(1),
    );
    controlTap.pollOutput();
    data.next = [{ kind: 'Report', report: REPORT }];
    turn({ kind: 'Directed', message: STOP }, 2);
    controlTap.handleInput({ kind: 'Reported', report: REPORT }, instant(3));
    expect(kinds()).toEqual(['Command', 'NextDirective', 'NextReport']);
  });

  test('is told in full when nobody here said it', () => {
    turn({ kind: 'Directed', message: STOP }, 2);
    controlTap.handleInput({ kind: 'Reported', report: REPORT }, instant(3));
    expect(kinds()).toEqual(['Directed', 'Reported']);
    expect(entries()[0]?.step.input).toEqual({ kind: 'Directed', message: STOP });
  });

  test('is told in full after more were said than anybody heard', () => {
    const last: GeneratedDirective = { ...STOP };
    control.next = Array.from({ length: 1_100 }, () => ({ kind: 'Direct', message: STOP }));
    control.next.push({ kind: 'Direct', message: last });
    controlTap.handleTimeout(instant(1));
    for (let left = control.next.length; left >= 0; left -= 1) controlTap.pollOutput();
    turn({ kind: 'Directed', message: STOP }, 2);
    turn({ kind: 'Directed', message: last }, 2);
    expect(kinds()).toEqual(['Timeout', 'Directed', 'Directed']);
  });
});

describe('a segment that is full', () => {
  test('ends with the turn, and the next begins with a snapshot and what is unheard', () => {
    setUp(400);
    snapshots = [Uint8Array.of(7)];
    data.next = [{ kind: 'Report', report: REPORT }];
    for (let at = 1; at <= 30; at += 1) turn(CLIENT, at);
    const [older, present, ...more] = decoded().segments;
    expect(more).toEqual([]);
    expect(older?.start.snapshot).toBeUndefined();
    expect(present?.start.snapshot).toEqual(Uint8Array.of(7));
    expect(present?.start.reports).toEqual([REPORT]);
    expect((older?.count ?? 0) + (present?.count ?? 0)).toBe(30);
    expect(entries().map(({ number }) => number)).toEqual(
      Array.from({ length: 30 }, (_, n) => n + 1),
    );
    expect(entries().map(({ at }) => at)).toEqual(Array.from({ length: 30 }, (_, n) => n + 1));
    expect(recorder.missed).toBe(0);
  });

  test('does not end while a machine has something to say', () => {
    setUp(400);
    snapshots = [Uint8Array.of(7)];
    controlTap.handleTimeout(instant(0));
    for (let at = 1; at <= 50; at += 1) turn(CLIENT, at);
    expect(decoded().segments).toHaveLength(1);
    expect(snapshots).toHaveLength(1);
    controlTap.pollOutput();
    turn(CLIENT, 51);
    expect(decoded().segments).toHaveLength(2);
  });

  test('counts what it misses, and keeps what it has, until a snapshot can be had', () => {
    setUp(400);
    for (let at = 1; at <= 100; at += 1) turn(CLIENT, at);
    const [first, ...more] = decoded().segments;
    expect(more).toEqual([]);
    expect(recorder.missed).toBe(100 - (first?.count ?? 0));
    expect(first?.count).toBeGreaterThan(10);
    snapshots = [Uint8Array.of(8)];
    for (let at = 101; at <= 1_200; at += 1) turn(CLIENT, at);
    expect(decoded().segments).toHaveLength(2);
  });

  test('that somebody reads is not written over', () => {
    setUp(400);
    snapshots = Array.from({ length: 50 }, (_, n) => Uint8Array.of(n));
    for (let at = 1; at <= 60; at += 1) turn(CLIENT, at);
    const taken = recorder.take();
    const before = traceOf(taken.segments);
    for (let at = 61; at <= 300; at += 1) turn(FLUSHED, at);
    expect(traceOf(taken.segments)).toEqual(before);
    taken.release();
    expect(traceOf(recorder.take().segments)).not.toEqual(before);
  });
});

function setUp(segmentBytes: number): void {
  data = new Puppet();
  control = new Puppet();
  snapshots = [];
  recorder = new Recorder({ segmentBytes, snapshot: () => snapshots.shift() });
  dataTap = recorder.tapData(data);
  controlTap = recorder.tapControl(control);
}

function turn(input: PlaneInput, at: number): void {
  dataTap.handleInput(input, instant(at));
  while (dataTap.pollOutput() !== undefined);
  dataTap.pollTimeout();
}

function digestOf(outputs: PlaneOutput[], at: Instant | undefined): number | undefined {
  setUp(10_000);
  data.next = outputs;
  data.wake = at === undefined ? undefined : { at, reason: 'sweep' };
  turn(CLIENT, 1);
  return entries()[0]?.digest;
}

function decoded(): Trace {
  const result = decodeTrace(traceOf(recorder.take().segments, HEADER));
  if (!result.ok) throw new Error(`${result.problem} at ${result.offset}`);
  return result.trace;
}

function entries(): TraceEntry[] {
  return decoded().segments.flatMap((segment) => [...entriesOf(segment)]);
}

function kinds(): string[] {
  return entries().map(({ step }) => step.input.kind);
}
