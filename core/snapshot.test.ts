/** Snapshots of busy machines come back whole; anything that is not one is refused, and changes nothing. */
import { describe, expect, test } from 'vitest';
import { BusyProxy } from '../test/busy-proxy.ts';
import { ControlBench, controlOptions, planeOptions } from '../test/control-bench.ts';
import { expectSame } from '../test/mirror.ts';
import { clusterSettings, configOf, listenerConfig, PlaneBench } from '../test/plane-bench.ts';
import { ControlPlane } from './control-plane.ts';
import { DataPlane } from './data-plane.ts';
import { OutputQueue } from './output-queue.ts';
import type { PlaneOutput } from './plane-contract.ts';
import { draftProxy, restoreProxy, snapshotProxy } from './proxy-snapshot.ts';
import { SnapshotError } from './snapshot-error.ts';
import { SnapshotCatalog } from './snapshot-catalog.ts';
import { coreCatalog } from './snapshot-classes.ts';
import { fieldOf, fieldsOf, isObject } from './snapshot-objects.ts';
import { restoreInto, seal, takeFrom } from './snapshot-machines.ts';
import { SnapshotMemory } from './snapshot-memory.ts';
import { restoreSnapshot, takeSnapshot } from './snapshot.ts';
import { instant } from './time.ts';

describe('a snapshot', () => {
  test('knows every class and every shared object of busy machines', () => {
    const [one, other] = [busy(1), busy(2)].map((bench) => reachable([bench.plane, bench.control]));
    const shared = [...one!].filter((value) => other!.has(value));
    // What two proxies that know nothing of each other both hold, their modules share.
    const unknown = shared.filter((value) => coreCatalog().nameOf(value) === undefined);
    expect(unknown).toEqual([]);
    expect(shared.length).toBeGreaterThan(3);
  });

  test('is refused while outputs wait to be polled', () => {
    const plane = new DataPlane(planeOptions());
    plane.handleInput(
      { kind: 'Directed', message: { generation: 1, directive: { kind: 'Stop' } } },
      instant(0),
    );
    expect(() => takeSnapshot(plane)).toThrow('outputs are drained before a snapshot is taken');
  });

  test('without payloads has as many zeros in their place, and all else as it was', () => {
    const bench = new PlaneBench(configOf([clusterSettings({ sendProxyProtocol: true })]));
    bench.turn(() => bench.client('a'));
    bench.ports.fate = () => 'blocked';
    bench.turn(() => {
      bench.client('secret');
      bench.backend('hidden!');
    });
    expect(bench.plane.waiting).toBe(2);
    const bytes = takeSnapshot(bench.plane, { payloads: 'lengths' });
    expect(words(takeSnapshot(bench.plane))).toContain('secret');
    expect(words(bytes)).not.toMatch(/secret|hidden/);
    const restored = new DataPlane(planeOptions());
    restoreSnapshot(restored, bytes);
    expectSame(takeSnapshot(restored), bytes);
    const socket = bench.socket(1);
    restored.handleInput({ kind: 'UpstreamWritable', socket }, instant(0));
    expect(restored.pollOutput()).toMatchObject({ socket, payload: new Uint8Array(6) });
  });

  test('of a proxy keeps what its machines share', () => {
    const { plane: data, control } = busy(3);
    const fresh = {
      data: new DataPlane(planeOptions()),
      control: new ControlPlane(controlOptions()),
    };
    const bytes = snapshotProxy({ data, control });
    restoreProxy(fresh, bytes);
    const both = [reachable([fresh.data]), reachable([fresh.control])];
    const shared = [...both[0]!].filter((value) => both[1]!.has(value));
    expect(shared.length).toBeGreaterThan(20);
    expectSame(snapshotProxy(fresh), bytes);
  });

  test('has a sweep go on where it was', () => {
    const settings = clusterSettings({ onBackendRemoved: 'close' });
    const more = { ...planeOptions(), closesPerTurn: 3 };
    const bench = new PlaneBench(configOf([settings]), undefined, more);
    bench.turn(() => {
      for (let port = 1; port <= 16; port += 1) bench.client('a', `10.1.0.1:${port}`);
    });
    bench.turn(() => bench.direct({ kind: 'SetCluster', settings: { ...settings, backends: [] } }));
    bench.timer();
    expect(bench.plane.pollTimeout()?.reason).toBe('sweep');
    const restored = new DataPlane(more);
    restoreSnapshot(restored, takeSnapshot(bench.plane));
    for (const now = bench.ports.clock; bench.plane.pollTimeout()?.reason === 'sweep';) {
      for (const plane of [bench.plane, restored]) plane.handleTimeout(now);
      expect(outputsOf(restored)).toEqual(outputsOf(bench.plane));
    }
    expect(restored.flowCount).toBe(0);
    expectSame(takeSnapshot(restored), takeSnapshot(bench.plane));
  });

  test('leaves out what is empty of a table', () => {
    const lengths = [1_000, 100_000].map((maxFlows) => {
      const bench = new PlaneBench(configOf([clusterSettings()], [listenerConfig({ maxFlows })]));
      return takeSnapshot(bench.plane).length;
    });
    expect(lengths[1]! - lengths[0]!).toBeLessThan(100);
  });
});

describe('a draft of a snapshot', () => {
  test('comes to the same bytes, in slices, whatever its memory held before', () => {
    const { plane: data, control } = busy(5);
    const listener = listenerConfig({ maxFlows: 2_000 });
    const bench = new PlaneBench(configOf([clusterSettings()], [listener]));
    bench.turn(() => {
      for (let port = 1; port <= 2_000; port += 1) bench.client('a', `10.1.0.1:${port}`);
    });
    const memory = new SnapshotMemory();
    for (const machines of [
      { data, control },
      { data: bench.plane, control },
      { data, control },
    ]) {
      memory.fit(0).fill(0xff);
      const slices = [...draftProxy(machines, { memory }).slices()];
      const bytes = snapshotProxy(machines);
      expect(Math.max(...slices.map(({ length }) => length))).toBeLessThanOrEqual(65_536);
      expect(slices).toHaveLength(Math.ceil(bytes.length / 65_536));
      expectSame(Uint8Array.from(slices.flatMap((slice) => [...slice])), bytes);
    }
    expect(memory.length).toBeGreaterThan(65_536);
  });

  test('stands in memory that was there, where that suffices', () => {
    const { plane: data, control } = busy(6);
    const memory = new SnapshotMemory();
    const [one, other] = [0, 1].map(() => draftProxy({ data, control }, { memory }).whole());
    expect(other?.buffer).toBe(one?.buffer);
    const small = draftProxy({ data: new DataPlane(planeOptions()), control }, { memory });
    expect(small.whole().buffer).toBe(one?.buffer);
  });
});

describe('bytes that are no snapshot of such a machine', () => {
  const bench = busy(4);
  const bytes = takeSnapshot(bench.plane);

  test.each([0, 1, 15, 16, 32, 47, 48, 64, bytes.length - 16, bytes.length - 1])(
    'are refused when only %i of them are left',
    (length) => {
      expectRefused(bytes.slice(0, length));
      expectRefused(new Uint8Array(length));
    },
  );

  test('are refused when more follow', () => {
    expectRefused(Uint8Array.of(...bytes.slice(0, 64), ...new Uint8Array(64)));
    const longer = new Uint8Array(bytes.length + 16);
    longer.set(bytes);
    expectRefused(longer);
  });

  test('are refused with any one bit turned', () => {
    const places = [...Array(64).keys(), bytes.length - 1];
    for (let at = 64; at < bytes.length; at += 997) places.push(at);
    for (const at of places) {
      const damaged = bytes.slice();
      damaged[at]! ^= 1 << (at % 8);
      expectRefused(damaged);
    }
  });

  test('are refused when they are of another version, or of another build', () => {
    const other = bytes.slice();
    other[4] = 9;
    expectRefused(other, 'version 9');
    const build = new SnapshotCatalog(
      { Planted: () => new Planted() },
      {},
      { DataPlane: new DataPlane(planeOptions()) },
    );
    expectRefused(takeFrom(build, [new DataPlane(planeOptions())]), 'another build');
  });

  test('are refused when they are of the other machine, or of both', () => {
    expectRefused(takeSnapshot(bench.control), 'has no ControlPlane in this place');
    expectRefused(snapshotProxy({ data: bench.plane, control: bench.control }), '2 machines');
  });

  test('end with an error and nothing worse, whatever they say under a good checksum', () => {
    const catalog = new SnapshotCatalog(
      { Planted: () => new Planted() },
      {},
      { Owner: new Owner() },
    );
    const owner = new Owner();
    owner.planted = new Planted();
    const good = takeFrom(catalog, [owner]);
    const untouched = takeFrom(catalog, [new Owner()]);
    for (let at = 32; at < good.length - 16; at += 1) {
      for (let bit = 0; bit < 8; bit += 1) {
        const forged = good.slice();
        forged[at]! ^= 1 << bit;
        seal(forged);
        const target = new Owner();
        try {
          restoreInto(catalog, [target], forged);
        } catch (error) {
          expect(error).toBeInstanceOf(SnapshotError);
          expectSame(takeFrom(catalog, [target]), untouched);
        }
      }
    }
  });

  test('are read wherever in memory they begin', () => {
    const apart = new Uint8Array(bytes.length + 1);
    apart.set(bytes, 1);
    const restored = new DataPlane(planeOptions());
    restoreSnapshot(restored, apart.subarray(1));
    expectSame(takeSnapshot(restored), bytes);
  });

  function expectRefused(given: Uint8Array, why: RegExp | string = /./): void {
    const fresh = new DataPlane(planeOptions());
    const before = takeSnapshot(fresh);
    expect(() => restoreSnapshot(fresh, given)).toThrow(SnapshotError);
    expect(() => restoreSnapshot(fresh, given)).toThrow(why);
    expectSame(takeSnapshot(fresh), before);
  }
});

/** What a class may hold. `late` stands for the field that somebody adds tomorrow. */
class Planted {
  readonly numbers: number[] = [0, -0, -1, 1.5, 2 ** 53, Number.NaN, -Infinity, 2 ** 32];
  readonly words = ['', 'a', 'ä€\u{1f600}\ud800', 'a'];
  readonly holes = withHole([1, 2, undefined, null, true, false]);
  readonly map = new Map<unknown, unknown>([
    [{ key: 1 }, 'object'],
    ['b', 1],
    ['a', 2],
  ]);
  readonly set = new Set<unknown>(['z', 'y', this.numbers]);
  readonly words32 = new Int32Array(16);
  readonly doubles = new Float64Array(this.words32.buffer);
  readonly part = new Uint8Array(Uint8Array.of(9, 8, 7, 6).buffer, 1, 2);
  readonly itself: unknown = this;
  private late: unknown = undefined;

  learn(late: unknown): this {
    this.late = late;
    return this;
  }

  get learnt(): unknown {
    return this.late;
  }
}

class Unheard {
  readonly of = 'nobody';
}

class Owner {
  planted: unknown = undefined;
  readonly outputs = new OutputQueue<PlaneOutput>();
  readonly given = (): string => 'mine';
  readonly tools = { given: this.given };
}

describe('any object', () => {
  const catalog = new SnapshotCatalog({ Planted: () => new Planted() }, {}, { Owner: new Owner() });

  test('comes back with all that it holds, a field that nobody told of included', () => {
    const planted = new Planted().learn({ of: [1, 2] });
    planted.words32[3] = 77;
    const restored = copyOf(planted);
    expect(restored).toStrictEqual(planted);
    expect(restored).not.toBe(planted);
    expect(restored.itself).toBe(restored);
    expect(restored.learnt).toEqual(planted.learnt);
    expect([...restored.map.keys()].slice(1)).toEqual(['b', 'a']);
    expect(1 in restored.holes).toBe(false);
    expect(Object.is(restored.numbers[1], -0)).toBe(true);
    restored.words32[4] = 5;
    expect(new Int32Array(restored.doubles.buffer)[4]).toBe(5);
    expect(restored.part).toEqual(Uint8Array.of(8, 7));
  });

  test('that a new machine has keeps its functions, and is the same object', () => {
    const [owner, fresh] = [new Owner(), new Owner()];
    const { outputs, given } = fresh;
    restoreInto(catalog, [fresh], takeFrom(catalog, [owner]));
    expect(fresh.outputs).toBe(outputs);
    expect(fresh.given).toBe(given);
    expect(fresh.tools.given).toBe(given);
  });

  test.each([
    [() => 1, 'Owner.planted.late.what is a function that was made while the machine ran'],
    [Symbol('s'), 'Owner.planted.late.what is a symbol'],
    [1n, 'Owner.planted.late.what is a bigint'],
    [new WeakMap(), 'Owner.planted.late.what is a WeakMap, which no snapshot knows; add it'],
    [new Unheard(), 'what is a Unheard, which no snapshot knows; add it to core/'],
    [new Uint8ClampedArray(1), 'what is a Uint8ClampedArray, which a snapshot does not hold'],
  ])('that a snapshot cannot hold is named, with the way there: %s', (what, message) => {
    expect(() => copyOf(new Planted().learn({ what }))).toThrow(message);
  });

  test('with a field that its class does not declare is refused', () => {
    const planted = Object.assign(new Planted(), { extra: 1 });
    expect(() => copyOf(planted)).toThrow('Owner.planted has other fields than a new Planted');
  });

  function copyOf(planted: Planted): Planted {
    const [owner, fresh] = [new Owner(), new Owner()];
    owner.planted = planted;
    const bytes = takeFrom(catalog, [owner]);
    restoreInto(catalog, [fresh], bytes);
    expectSame(takeFrom(catalog, [fresh]), bytes);
    if (!(fresh.planted instanceof Planted)) throw new Error('another class came back');
    return fresh.planted;
  }
});

function busy(seed: number): ControlBench {
  const bench = new ControlBench(2);
  const proxy = new BusyProxy(bench, seed);
  for (let step = 0; step < 150; step += 1) proxy.step();
  return bench;
}

/** Every object that leads from these, constants excluded. */
function reachable(from: readonly object[]): Set<object> {
  const seen = new Set<object>();
  const visit = (value: unknown): void => {
    if (!isObject(value) || seen.has(value)) return;
    seen.add(value);
    if (coreCatalog().nameOf(value) !== undefined || ArrayBuffer.isView(value)) return;
    if (value instanceof Map) for (const [key, one] of value) [key, one].forEach(visit);
    else if (value instanceof Set) for (const one of value) visit(one);
    else for (const field of fieldsOf(value)) visit(fieldOf(value, field));
  };
  from.forEach(visit);
  return seen;
}

function outputsOf(plane: DataPlane): PlaneOutput[] {
  const outputs: PlaneOutput[] = [];
  for (let one = plane.pollOutput(); one !== undefined; one = plane.pollOutput()) outputs.push(one);
  return outputs;
}

/** Nothing in the second place, not even undefined. */
function withHole(list: unknown[]): unknown[] {
  Reflect.deleteProperty(list, 1);
  return list;
}

function words(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
}
