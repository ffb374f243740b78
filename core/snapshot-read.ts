/**
 * Makes of a snapshot's graph the objects that it was written from. Nothing that was there before is touched until all of it
 * was read, so that a snapshot is restored as a whole or not at all.
 */
import type { ByteReader } from './snapshot-bytes.ts';
import type { SnapshotCatalog } from './snapshot-catalog.ts';
import { SnapshotError } from './snapshot-error.ts';
import { MARK } from './snapshot-format.ts';
import { fieldOf, isObject, prototypeOf, viewOver } from './snapshot-objects.ts';
import { twinIn } from './snapshot-write.ts';

interface Shape {
  readonly fields: readonly string[];
  /** Text of an object of this shape. */
  readonly sample: string;
}

/** Fields that an object which was there before will have. */
interface Change {
  readonly target: object;
  readonly fields: readonly string[];
  readonly values: readonly unknown[];
}

/** By mark, of which theirs come first. */
const SIMPLE = [undefined, null, false, true];

/** In the place of nothing at all. */
const HOLE = Symbol('hole');

export class GraphReader {
  private readonly catalog: SnapshotCatalog;
  private readonly graph: ByteReader;
  private readonly blocks: ByteReader;
  private readonly objects: object[] = [];
  private readonly texts: string[] = [];
  private readonly shapes: Shape[] = [];
  /** Objects of the new machine that were used again. */
  private readonly taken = new Set<object>();
  private readonly changes: Change[] = [];
  private readonly tables: Uint8Array[] = [];

  constructor(catalog: SnapshotCatalog, graph: ByteReader, blocks: ByteReader) {
    this.catalog = catalog;
    this.graph = graph;
    this.blocks = blocks;
  }

  /** Reads into `machine`, which changes only with `apply`. */
  machine(machine: object): void {
    if (this.value(machine) !== machine) {
      throw new SnapshotError('the snapshot is of something else than such a machine');
    }
  }

  /** All machines were read: what was kept of their tables. */
  finish(): void {
    for (const table of this.tables) {
      let at = 0;
      for (let runs = this.graph.countOfItems(); runs > 0; runs -= 1) {
        at += this.graph.count();
        const block = this.blocks.block(this.graph.count());
        if (at + block.length > table.length) {
          throw new SnapshotError('the snapshot has a table that is longer than it is');
        }
        table.set(block, at);
        at += block.length;
      }
    }
  }

  /** Everything was read: now the machines are what the snapshot says. */
  apply(): void {
    if (this.graph.left > 0 || this.blocks.left > 15) {
      throw new SnapshotError('the snapshot goes on behind its end');
    }
    for (const { target, fields, values } of this.changes) setFields(target, fields, values);
  }

  private value(twin: unknown): unknown {
    const value = this.valueOrHole(twin);
    if (value === HOLE) throw new SnapshotError('the snapshot has a hole outside of a list');
    return value;
  }

  private valueOrHole(twin: unknown): unknown {
    const { graph } = this;
    const mark = graph.byte();
    if (mark < SIMPLE.length) return SIMPLE[mark];
    switch (mark) {
      case MARK.natural:
        return graph.count();
      case MARK.negative:
        return -1 - graph.count();
      case MARK.float:
        return graph.float();
      case MARK.hole:
        return HOLE;
      case MARK.function:
        if (typeof twin === 'function') return twin;
        throw new SnapshotError('the snapshot has a function where the new machine has none');
      case MARK.text:
      case MARK.knownText:
        return this.text(mark);
      default:
        return this.object(mark, twin);
    }
  }

  private text(mark: number): string {
    if (mark !== MARK.text) return known(this.texts, this.graph.count());
    const text = this.graph.text();
    this.texts.push(text);
    return text;
  }

  private object(mark: number, twin: unknown): object {
    switch (mark) {
      case MARK.known:
        return known(this.objects, this.graph.count());
      case MARK.constant:
        return this.constant();
      case MARK.plain:
        return this.plain(twin);
      case MARK.instance:
        return this.instance(twin);
      case MARK.list:
        return this.list();
      case MARK.map:
        return this.map();
      case MARK.set:
        return this.set();
      case MARK.view:
        return this.view();
      default:
        throw new SnapshotError(`the snapshot has an unknown mark ${mark}`);
    }
  }

  private constant(): object {
    const name = this.textValue();
    const constant = this.catalog.constantNamed(name);
    if (constant === undefined) throw new SnapshotError(`nothing shared is called "${name}"`);
    return constant;
  }

  private textValue(): string {
    const value = this.value(undefined);
    if (typeof value !== 'string') throw new SnapshotError('the snapshot lacks a name');
    return value;
  }

  /** Made from text, an object has the layout that one of the source has: from nothing, field by field, it would not. */
  private plain(twin: unknown): object {
    const { fields, sample } = this.shape();
    const target: unknown = JSON.parse(sample);
    if (!isObject(target)) throw new SnapshotError('the snapshot lacks an object');
    this.objects.push(target);
    for (const field of fields) {
      Reflect.set(target, field, this.value(twinIn(target, twin, field)));
    }
    return target;
  }

  private shape(): Shape {
    const number = this.graph.count();
    if (number < this.shapes.length) return known(this.shapes, number);
    const fields: string[] = [];
    const samples: string[] = [];
    for (let count = this.graph.countOfItems(); count > 0; count -= 1) {
      const field = this.graph.text();
      fields.push(field);
      samples.push(`${JSON.stringify(field)}:${this.graph.byte() === 1 ? '0' : 'null'}`);
    }
    const shape = { fields, sample: `{${samples.join()}}` };
    this.shapes.push(shape);
    return shape;
  }

  /** The one that the new machine has in this place, because others may know it; else a new one. */
  private instance(twin: unknown): object {
    const name = this.textValue();
    const one = this.catalog.classNamed(name);
    if (one === undefined) throw new SnapshotError(`there is no class "${name}"`);
    const { fields, prototype, make } = one;
    const isThere = isObject(twin) && prototypeOf(twin) === prototype && !this.taken.has(twin);
    const target = isThere ? twin : make?.();
    if (target === undefined) throw new SnapshotError(`a new machine has no ${name} in this place`);
    this.taken.add(target);
    this.objects.push(target);
    const values = fields.map((field) => this.value(isThere ? fieldOf(twin, field) : undefined));
    if (isThere) this.changes.push({ target, fields, values });
    else setFields(target, fields, values);
    return target;
  }

  private list(): object {
    const list: unknown[] = [];
    this.objects.push(list);
    for (let left = this.graph.countOfItems(); left > 0; left -= 1) {
      const value = this.valueOrHole(undefined);
      if (value === HOLE) list.length += 1;
      else list.push(value);
    }
    return list;
  }

  private map(): object {
    const map = new Map<unknown, unknown>();
    this.objects.push(map);
    for (let left = this.graph.countOfItems(); left > 0; left -= 1) {
      const key = this.value(undefined);
      map.set(key, this.value(undefined));
    }
    return map;
  }

  private set(): object {
    const set = new Set<unknown>();
    this.objects.push(set);
    for (let left = this.graph.countOfItems(); left > 0; left -= 1) set.add(this.value(undefined));
    return set;
  }

  private view(): object {
    const kind = this.graph.byte();
    const number = this.objects.push({}) - 1;
    const view = viewOver(kind, this.buffer());
    if (view === undefined) throw new SnapshotError('the snapshot has a table of no known kind');
    this.objects[number] = view;
    return view;
  }

  private buffer(): ArrayBuffer {
    const mark = this.graph.byte();
    if (mark === MARK.known) {
      const buffer = known(this.objects, this.graph.count());
      if (buffer instanceof ArrayBuffer) return buffer;
    }
    if (mark !== MARK.buffer) throw new SnapshotError('the snapshot lacks the bytes of a table');
    const bytes = new Uint8Array(this.graph.count());
    this.tables.push(bytes);
    this.objects.push(bytes.buffer);
    return bytes.buffer;
  }
}

function known<T>(list: readonly T[], number: number): T {
  const value = list[number];
  if (value === undefined) throw new SnapshotError('the snapshot names what it never told');
  return value;
}

function setFields(target: object, fields: readonly string[], values: readonly unknown[]): void {
  for (const [at, field] of fields.entries()) Reflect.set(target, field, values[at]);
}
