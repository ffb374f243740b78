import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HEADER, traceOf } from '../test/recorded-world.ts';
import { steps } from '../test/trace-arbitraries.ts';
import { instant } from './time.ts';
import { decodeTrace, entriesOf, type SegmentSource, type Trace } from './trace.ts';
import { ByteReader, ByteWriter } from './trace-bytes.ts';
import { checksum } from './trace-checksum.ts';
import { putControlStep, putDataStep, type Step } from './trace-record.ts';
import { encodeValue, takeValue } from './trace-value.ts';

const START = { at: instant(1_000), snapshot: undefined, directives: [], reports: [] };

const timed = fc.array(fc.tuple(steps, fc.integer({ min: -100, max: 2 ** 40 })), { maxLength: 20 });

/** Of the data that traces keep: no null, and no negative zero where it could not be told. */
const values = fc.letrec((tie) => ({
  any: fc.oneof(
    { depthSize: 'small' },
    fc.string({ unit: 'binary' }),
    fc.double(),
    fc.integer(),
    fc.boolean(),
    fc.constant(undefined),
    fc.uint8Array(),
    fc.array(tie('any')),
    fc.dictionary(fc.string(), tie('any'), { noNullPrototype: true }),
  ),
})).any;

describe('plain data', () => {
  test('comes back as it was', () => {
    fc.assert(
      fc.property(values, (value) => {
        const from = new ByteReader(encodeValue(value));
        expect(takeValue(from)).toStrictEqual(value);
        expect(from.left).toBe(0);
      }),
      { numRuns: 500 },
    );
  });

  test('nested too deep is damage, and no overflow of the stack', () => {
    const list = (depth: number): Uint8Array =>
      new Uint8Array(2 * depth).map((_, at) => (at % 2 === 0 ? 7 : 1));
    expect(() => takeValue(new ByteReader(list(100_000)))).toThrow('data nested too deep');
  });
});

describe('a trace', () => {
  test('comes back as it was, every kind of input and every time', () => {
    fc.assert(
      fc.property(timed, timed, (one, other) => {
        const segments = [segmentOf(one), segmentOf(other, { snapshot: Uint8Array.of(1, 2, 3) })];
        const trace = decoded(traceOf(segments));
        expect(trace.header).toStrictEqual(HEADER);
        expect(trace.truncated).toBe(false);
        const [first, second] = trace.segments;
        expect(first && stepsIn(trace, 0)).toStrictEqual(one.map(([step]) => step));
        expect(second && stepsIn(trace, 1)).toStrictEqual(other.map(([step]) => step));
        expect(second?.first).toBe(one.length + 1);
        expect(second?.start.snapshot).toStrictEqual(Uint8Array.of(1, 2, 3));
      }),
      { numRuns: 200 },
    );
  });

  test('that breaks off gives the inputs that are whole', () => {
    fc.assert(
      fc.property(timed, fc.double({ min: 0, max: 1, maxExcluded: true }), (all, where) => {
        const bytes = traceOf([segmentOf(all)]);
        const result = decodeTrace(bytes.subarray(0, Math.floor(where * bytes.length)));
        if (!result.ok) return;
        expect(result.trace.truncated).toBe(true);
        const whole = result.trace.segments.length === 0 ? [] : stepsIn(result.trace, 0);
        expect(whole).toStrictEqual(all.slice(0, whole.length).map(([step]) => step));
      }),
    );
  });

  test('with a bit turned over is refused, or ends early: nothing else is read', () => {
    const all = fc.sample(timed, { numRuns: 1, seed: 4 })[0] ?? [];
    const bytes = traceOf([segmentOf(all)]);
    fc.assert(
      fc.property(fc.nat(bytes.length * 8 - 1), (bit) => {
        const damaged = bytes.slice();
        damaged[bit >>> 3] = (damaged[bit >>> 3] ?? 0) ^ (1 << (bit & 7));
        const result = decodeTrace(damaged);
        if (result.ok) expect(result.trace.truncated).toBe(true);
        else expect(result).toMatchObject({ problem: /./, fix: /./ });
      }),
      { numRuns: 500 },
    );
  });

  test('of any bytes at all is answered, without a throw and without much memory', () => {
    const magic = traceOf([]).subarray(0, 8);
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.integer({ min: 1, max: 7 }), fc.uint8Array())), (parts) => {
        const bytes = [magic, ...parts.map(([tag, content]) => blockOf(tag, content))];
        const result = decodeTrace(Uint8Array.from(bytes.flatMap((part) => [...part])));
        expect(result.ok).toBeTypeOf('boolean');
      }),
      { numRuns: 1_000 },
    );
    // A list, a text, bytes and a table that claim 2^40 items.
    const huge = [0x80, 0x80, 0x80, 0x80, 0x80, 0x20];
    for (const tag of [5, 6, 7, 8]) {
      const value = () => takeValue(new ByteReader(Uint8Array.of(tag, ...huge)));
      expect(value).toThrow(/1099511627776/);
    }
  });

  test('of whole blocks with any records in them is answered', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (records) => {
        const result = decodeTrace(traceOf([{ start: START, values: [], records }]));
        if (!result.ok) return;
        for (const segment of result.trace.segments) expect([...entriesOf(segment)]).toBeDefined();
      }),
      { numRuns: 2_000 },
    );
  });

  test('says what is wrong with a file of another kind, and what to do', () => {
    const bytes = traceOf([]);
    expect(decodeTrace(new TextEncoder().encode('# a configuration'))).toStrictEqual({
      ok: false,
      offset: 0,
      problem: 'not a trace of sozu-udp',
      fix: 'name a file that the flight recorder wrote',
    });
    expect(decodeTrace(bytes.with(7, 9))).toMatchObject({
      offset: 7,
      problem: 'format 9',
      fix: 'replay it with the version that wrote it',
    });
    const flipped = bytes.with(20, (bytes[20] ?? 0) ^ 1);
    expect(decodeTrace(flipped)).toMatchObject({ problem: 'a block with a wrong checksum' });
    const longer = Uint8Array.from([...bytes, 1]);
    expect(decodeTrace(longer)).toMatchObject({ problem: 'bytes behind the end' });
  });
});

function segmentOf(
  all: readonly (readonly [Step, number])[],
  start: Partial<SegmentSource['start']> = {},
): SegmentSource {
  const out = new ByteWriter(new Uint8Array(1 + all.length * 400));
  const kept: unknown[] = [];
  const list = { keep: (value: unknown) => kept.push(value) - 1 };
  for (const [{ machine, input }, delta] of all) {
    // The first of them may not lie before the beginning of time.
    const since = Math.max(delta, kept.length + out.at === 0 ? 0 : -50);
    if (machine === 'data') putDataStep(out, input, since, list);
    else putControlStep(out, input, since, list);
  }
  return { start: { ...START, ...start }, values: kept, records: out.bytes.subarray(0, out.at) };
}

function stepsIn(trace: Trace, index: number): Step[] {
  const segment = trace.segments[index];
  return segment === undefined ? [] : [...entriesOf(segment)].map(({ step }) => step);
}

function decoded(bytes: Uint8Array): Trace {
  const result = decodeTrace(bytes);
  if (!result.ok) throw new Error(`${result.problem} at ${result.offset}`);
  return result.trace;
}

function blockOf(tag: number, content: Uint8Array): Uint8Array {
  const out = new ByteWriter(new Uint8Array(9 + content.length));
  out.byte(tag);
  out.word(content.length);
  out.word(checksum(content, tag));
  out.raw(content);
  return out.bytes;
}
