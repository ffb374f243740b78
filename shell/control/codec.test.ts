/** Whatever comes over the socket is a request or a list of problems, never an exception, and nothing grows with it. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeRequest, encodeLine, LineSplitter, REQUEST_BYTES_MAX } from './codec.ts';
import { isMutation, REQUESTS } from './requests.ts';

describe('lines', () => {
  test('are the same however the bytes arrive', () => {
    const bytes = fc.array(fc.oneof(fc.constant(10), fc.nat(255)), { maxLength: 60 });
    const cuts = fc.array(fc.nat(60), { maxLength: 6 });
    fc.assert(
      fc.property(bytes, cuts, (sent, places) => {
        const splitter = new LineSplitter(100);
        const lines = pieces(sent, places).map((piece) => splitter.push(piece));
        const expected = text(sent).split('\n');
        expect(lines.flatMap((cut) => cut?.map(text))).toEqual(expected.slice(0, -1));
        expect(splitter.isInside).toBe(expected.at(-1) !== '');
      }),
    );
  });

  test('are given up for ever once one is too long, with its end or without', () => {
    const splitter = new LineSplitter(4);
    expect(splitter.push(Buffer.from('1234\n'))).toHaveLength(1);
    expect(splitter.push(Buffer.from('12345'))).toBeUndefined();
    expect(splitter.push(Buffer.from('\n1\n'))).toBeUndefined();
    expect(new LineSplitter(4).push(Buffer.from('12345\n'))).toBeUndefined();
  });
});

describe('requests', () => {
  test('garbage of any kind is no request, and is told to be none', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array(),
          fc.json().map((json) => Buffer.from(json)),
        ),
        (line) => {
          expect(decodeRequest(line)).toMatchObject({ ok: false, broken: true });
        },
      ),
    );
  });

  test('an envelope around anything is answered under its id', () => {
    const anything = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 4 });
    fc.assert(
      fc.property(fc.constantFrom(...REQUESTS.keys()), anything, fc.nat(), (command, more, id) => {
        const decoded = decode({ ...more, v: 1, id, command });
        expect(decoded.id).toBe(id);
        if (!decoded.ok) expect(decoded.problems.length).toBeGreaterThan(0);
      }),
      { numRuns: 500 },
    );
  });

  test('every key that a table may have, with a value of any kind, is taken or told', () => {
    const key = fc.constantFrom(
      'front_timeout',
      'max_flows',
      'rcvbuf',
      'load_balancing',
      'udp',
      '__proto__',
      'address',
    );
    const value = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom(0, -1, 2 ** 32, 'HRW'));
    const command = fc.constantFrom('listener udp add', 'listener udp update', 'cluster add');
    fc.assert(
      fc.property(command, fc.array(fc.tuple(key, value), { maxLength: 3 }), (name, entries) => {
        const settings = JSON.stringify(Object.fromEntries(entries));
        const named = name === 'cluster add' ? '"cluster":"c"' : '"address":"127.0.0.1:53"';
        const line = `{"v":1,"id":1,"command":"${name}",${named},"settings":${settings}}`;
        expect(decodeRequest(Buffer.from(line)).id).toBe(1);
      }),
      { numRuns: 500 },
    );
  });

  test('of another version, or without an id, there is none', () => {
    expect(decode({ v: 2, id: 1, command: 'status' })).toMatchObject({ problems: [{ path: 'v' }] });
    expect(decode({ v: 1, command: 'status' })).toMatchObject({ problems: [{ path: 'id' }] });
    expect(decode({ v: 1, id: 7, command: 'stat' })).toMatchObject({ id: 7, broken: false });
  });

  test('every problem is told at once, with its path and the bounds of the file', () => {
    const decoded = decode({
      v: 1,
      id: 1,
      command: 'backend add',
      cluster: '',
      backend: { address: 'localhost:53', weight: 256, sticky: 1 },
    });
    const problems = decoded.ok ? [] : decoded.problems;
    expect(problems.map(({ path }) => path).toSorted()).toEqual([
      'backend.address',
      'backend.sticky',
      'backend.weight',
      'cluster',
    ]);
  });

  test('settings are those of the tables in a file, without names and without keys of other protocols', () => {
    const decoded = decode({
      v: 1,
      id: 1,
      command: 'listener udp add',
      address: '127.0.0.1:0',
      settings: { address: '1.2.3.4:5', expect_proxy: true, max_flowz: 1, front_timeout: -1 },
    });
    expect(decoded.ok ? [] : decoded.problems.map(({ path }) => path).toSorted()).toEqual([
      'address',
      'settings.address',
      'settings.expect_proxy',
      'settings.front_timeout',
      'settings.max_flowz',
    ]);
    const cluster = { v: 1, id: 1, command: 'cluster add', cluster: 'c' };
    expect(
      decode({ ...cluster, settings: { udp: { limits: { sketch_columns: 3 } } } }),
    ).toMatchObject({ problems: [{ path: 'settings.udp.limits.sketch_columns' }] });
    expect(decode({ ...cluster, settings: { backends: [] } })).toMatchObject({ ok: false });
    expect(decode(cluster)).toMatchObject({ ok: true, request: { settings: {} } });
  });

  test('what has no path of its own cannot be reached by one', () => {
    const reload = { v: 1, id: 1, command: 'reload' };
    expect(decode({ ...reload, file: '../x.toml' })).toMatchObject({
      problems: [{ path: 'file' }],
    });
    expect(decode({ ...reload, file: '/x\0' })).toMatchObject({ ok: false });
    expect(decode({ ...reload, file: '/x.toml' })).toMatchObject({ ok: true });
  });

  test('what changes something is known as such', () => {
    const request = decode({ v: 1, id: 1, command: 'reload', dry_run: true });
    expect(request.ok && isMutation(request.request)).toBe(false);
    const names = [...REQUESTS.keys()].filter((command) => /add|remove|drain|kill/.test(command));
    expect(names.length).toBeGreaterThan(8);
  });
});

test('a line of ours is one line, whatever is in it', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const line = encodeLine({ id: 1, answer: value });
      expect(line.indexOf('\n')).toBe(line.length - 1);
      expect(JSON.parse(line)).toMatchObject({ v: 1, id: 1 });
    }),
  );
});

test('the longest request is told in the manual', () => {
  expect(REQUEST_BYTES_MAX).toBe(1_048_576);
});

function decode(body: object): ReturnType<typeof decodeRequest> {
  return decodeRequest(Buffer.from(JSON.stringify(body)));
}

function text(bytes: Iterable<number>): string {
  return String.fromCharCode(...bytes);
}

/** `bytes` cut at these places. */
function pieces(bytes: readonly number[], places: readonly number[]): Uint8Array[] {
  const ends = [...places, bytes.length].toSorted((a, b) => a - b);
  return ends.map((end, index) => Uint8Array.from(bytes.slice(ends[index - 1] ?? 0, end)));
}
