import { beforeEach, describe, expect, test } from 'vitest';
import { HEADER, traceOf } from '../test/recorded-world.ts';
import { ipv4 } from './address.ts';
import { listenerId, requestId } from './brand.ts';
import type { ControlInput, ControlMachine, ControlOutput } from './control-contract.ts';
import type { GeneratedDirective, Report } from './directives.ts';
import type { DataMachine, PlaneInput, PlaneOutput } from './plane-contract.ts';
import { SnapshotDraft } from './snapshot-machines.ts';
import type { SnapshotMemory } from './snapshot-memory.ts';
import { instant, type Instant } from './time.ts';
import { decodeTrace, entriesOf, type Trace, type TraceEntry } from './trace.ts';
import { Recorder, type RecorderOptions } from './trace-recorder.ts';

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

  handleTrain(): boolean {
    return false;
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

  test('ends with what the control plane heard, where no data plane is', () => {
    recorder = new Recorder({ segmentBytes: 400, snapshot: () => Uint8Array.of(7) });
    const alone = recorder.tapControl(control);
    for (let at = 1; at <= 100; at += 1) {
      alone.handleTimeout(instant(at));
      alone.pollOutput();
      alone.pollTimeout();
    }
    expect(decoded().segments).toHaveLength(2);
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

describe('the memory of snapshots', () => {
  let drafts = 0;

  /** A snapshot of `length` bytes that says which it is. */
  function draftOf(memory: SnapshotMemory, length: number): SnapshotDraft {
    const bytes = memory.fit(length).subarray(0, length);
    bytes.fill(0);
    drafts += 1;
    bytes[0] = drafts;
    return new SnapshotDraft(bytes);
  }

  test('is used again when a segment is no longer wanted, and not before', () => {
    const given: ArrayBufferLike[] = [];
    setUp(400, (memory) => {
      const draft = draftOf(memory, 64);
      given.push(memory.fit(0).buffer);
      return draft;
    });
    turns(1, 120);
    expect(given.length).toBeGreaterThan(4);
    expect(given.map((buffer) => given.indexOf(buffer))).toEqual(given.map((_, n) => n % 2));
  });

  test('is not written over while somebody reads it, in the present segment either', () => {
    setUp(400, (memory) => draftOf(memory, 64));
    turns(1, 60);
    const taken = recorder.take();
    const before = traceOf(taken.segments);
    expect(taken.segments.map(({ start }) => start.snapshot?.length)).toEqual([64, 64]);
    turns(61, 300);
    expect(traceOf(taken.segments)).toEqual(before);
  });

  test('is there before it is needed, as much as is expected', () => {
    const lengths: number[] = [];
    let expected = 1_000;
    setUp(
      4_000,
      (memory) => {
        lengths.push(memory.length);
        return draftOf(memory, 64);
      },
      () => expected,
    );
    turns(1, 600);
    expect(lengths.length).toBeGreaterThan(1);
    expect(new Set(lengths)).toEqual(new Set([1_250]));
    expected = 2_000;
    const before = lengths.length;
    turns(601, 2_000);
    expect(lengths.length).toBeGreaterThan(before + 1);
    expect(new Set(lengths.slice(before))).toEqual(new Set([2_500]));
  });

  test('that is long has a segment with room beside it', () => {
    setUp(400, (memory) => draftOf(memory, 8_000));
    turns(1, 400);
    const [older, present] = recorder.take().segments;
    expect(older?.start.snapshot?.length).toBe(8_000);
    expect(older?.records.length).toBeGreaterThan(1_700);
    expect(older?.records.length).toBeLessThan(2_000);
    expect(present).toBeDefined();
    expect(recorder.missed).toBe(0);
  });
});

function setUp(
  segmentBytes: number,
  snapshot: RecorderOptions['snapshot'] = () => snapshots.shift(),
  expectedBytes?: () => number,
): void {
  data = new Puppet();
  control = new Puppet();
  snapshots = [];
  const expecting = expectedBytes === undefined ? {} : { expectedBytes };
  recorder = new Recorder({ segmentBytes, snapshot, ...expecting });
  dataTap = recorder.tapData(data);
  controlTap = recorder.tapControl(control);
}

function turns(from: number, to: number): void {
  for (let at = from; at <= to; at += 1) turn(CLIENT, at);
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
