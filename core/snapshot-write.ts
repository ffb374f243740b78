/**
 * Writes everything that can be reached from machines, each object once: whoever shares an object goes on sharing it. Small
 * things go into a stream; tables are noted, and what was used of them is copied at the end, once.
 */
import { assert } from './assert.ts';
import { OutputQueue } from './output-queue.ts';
import { ByteWriter, dataRuns } from './snapshot-bytes.ts';
import { classNameOf, type SnapshotCatalog, type SnapshotClass } from './snapshot-catalog.ts';
import { SnapshotError } from './snapshot-error.ts';
import { MARK } from './snapshot-format.ts';
import { fieldOf, fieldsOf, isObject, prototypeOf, viewKindOf } from './snapshot-objects.ts';
import { UsedPart } from './used-part.ts';

/** What a datagram's bytes are called wherever one waits. */
const PAYLOAD = 'payload';

export class GraphWriter {
  readonly out: ByteWriter = new ByteWriter();
  /** What has to be kept of each table, in the order of the graph. */
  readonly blocks: Uint8Array[] = [];
  private readonly tables: ArrayBuffer[] = [];
  private readonly used = new Map<ArrayBufferLike, UsedPart>();
  private readonly catalog: SnapshotCatalog;
  private readonly keepPayloads: boolean;
  private readonly objects = new Map<object, number>();
  private count = 0;
  private readonly texts = new Map<string, number>();
  private readonly shapes = new Map<string, number>();
  /** Where in the machine we are, for errors. */
  private readonly path: string[] = [];

  constructor(catalog: SnapshotCatalog, keepPayloads: boolean) {
    this.catalog = catalog;
    this.keepPayloads = keepPayloads;
  }

  machine(machine: object): void {
    const blank = this.catalog.blankOf(machine);
    if (blank === undefined) throw new SnapshotError(`a ${nameOf(machine)} is no machine`);
    this.path.push(nameOf(machine));
    this.object(machine, blank);
    this.path.pop();
  }

  /** All machines were written: now what has to be kept of their tables. */
  finish(): void {
    for (const table of this.tables) {
      const runs = this.used.get(table)?.runs() ?? dataRuns(table);
      this.out.count(runs.length / 2);
      let behind = 0;
      for (let at = 0; at < runs.length; at += 2) {
        const [begin = 0, end = 0] = [runs[at], runs[at + 1]];
        this.out.count(begin - behind);
        this.out.count(end - begin);
        this.blocks.push(new Uint8Array(table, begin, end - begin));
        behind = end;
      }
    }
  }

  /** `twin`: what a machine that was just made has in this place. */
  private value(value: unknown, twin: unknown): void {
    const { out } = this;
    switch (typeof value) {
      case 'undefined':
        return out.byte(MARK.undefined);
      case 'boolean':
        return out.byte(value ? MARK.true : MARK.false);
      case 'number':
        return this.number(value);
      case 'string':
        return this.text(value);
      case 'function':
        if (typeof twin === 'function') return out.byte(MARK.function);
        throw this.error(
          'is a function that was made while the machine ran; let it be an object of a class, or given at construction',
        );
      case 'object':
        return value === null ? out.byte(MARK.null) : this.object(value, twin);
      default:
        throw this.error(`is a ${typeof value}, which a snapshot does not hold`);
    }
  }

  /** A whole number comes back as one to the engine too, which keeps it in another way than a fraction. */
  private number(value: number): void {
    const { out } = this;
    const isWhole = Number.isSafeInteger(value) && !Object.is(value, -0);
    out.byte(isWhole ? (value < 0 ? MARK.negative : MARK.natural) : MARK.float);
    if (isWhole) out.count(value < 0 ? -1 - value : value);
    else out.float(value);
  }

  private text(value: string): void {
    const known = this.texts.get(value);
    this.out.byte(known === undefined ? MARK.text : MARK.knownText);
    if (known !== undefined) return this.out.count(known);
    this.texts.set(value, this.texts.size);
    return this.out.text(value);
  }

  private object(value: object, twin: unknown): void {
    const { out } = this;
    const known = this.objects.get(value);
    const constant = known === undefined ? this.catalog.nameOf(value) : undefined;
    if (known !== undefined) {
      out.byte(MARK.known);
      out.count(known);
    } else if (constant !== undefined) {
      out.byte(MARK.constant);
      this.text(constant);
    } else {
      this.objects.set(value, this.count);
      this.count += 1;
      this.newObject(value, twin);
    }
  }

  private newObject(value: object, twin: unknown): void {
    if (Array.isArray(value)) return this.list(value);
    if (ArrayBuffer.isView(value)) return this.view(value);
    if (value instanceof Map) return this.map(value);
    if (value instanceof Set) return this.set(value);
    const prototype = prototypeOf(value);
    if (prototype === Object.prototype) return this.plain(value, twin);
    const known = this.catalog.classOf(value);
    if (known !== undefined) return this.instance(value, known, twin);
    const name = nameOf(value);
    throw this.error(`is a ${name}, which no snapshot knows; add it to core/snapshot-classes.ts`);
  }

  private list(list: readonly unknown[]): void {
    this.out.byte(MARK.list);
    this.out.count(list.length);
    for (let at = 0; at < list.length; at += 1) {
      const value = list[at];
      if (value === undefined && !(at in list)) this.out.byte(MARK.hole);
      else this.within(`[${at}]`, value, undefined);
    }
  }

  private map(map: ReadonlyMap<unknown, unknown>): void {
    this.out.byte(MARK.map);
    this.out.count(map.size);
    for (const [key, value] of map) {
      this.within('(a key)', key, undefined);
      this.within('(a value)', value, undefined);
    }
  }

  private set(set: ReadonlySet<unknown>): void {
    this.out.byte(MARK.set);
    this.out.count(set.size);
    for (const value of set) this.within('(a member)', value, undefined);
  }

  /** Its shape first: the names of its fields, and which of them are numbers. */
  private plain(value: object, twin: unknown): void {
    const fields = fieldsOf(value);
    this.out.byte(MARK.plain);
    this.shape(fields, value);
    for (const field of fields) this.field(value, field, twin);
  }

  private shape(fields: readonly string[], value: object): void {
    const isNumber = fields.map((field) => typeof fieldOf(value, field) === 'number');
    const key = JSON.stringify([fields, isNumber]);
    const known = this.shapes.get(key);
    this.out.count(known ?? this.shapes.size);
    if (known !== undefined) return;
    this.shapes.set(key, this.shapes.size);
    this.out.count(fields.length);
    for (const [at, field] of fields.entries()) {
      this.out.text(field);
      this.out.byte(isNumber[at] === true ? 1 : 0);
    }
  }

  private instance(value: object, { name, fields }: SnapshotClass, twin: unknown): void {
    if (value instanceof OutputQueue) {
      assert(value.pending === 0, 'outputs are drained before a snapshot is taken');
    }
    if (fieldsOf(value).join() !== fields.join()) {
      throw this.error(`has other fields than a new ${name}; declare all of them in the class`);
    }
    if (value instanceof UsedPart) this.used.set(value.table.buffer, value);
    this.out.byte(MARK.instance);
    this.text(name);
    for (const field of fields) this.field(value, field, twin);
  }

  private field(value: object, field: string, twin: unknown): void {
    const part = fieldOf(value, field);
    const hidden = !this.keepPayloads && field === PAYLOAD && part instanceof Uint8Array;
    if (hidden) this.hiddenBytes(part);
    else this.within(`.${field}`, part, twinIn(value, twin, field));
  }

  /** So many bytes that are not told: they come back as zeros. */
  private hiddenBytes(bytes: Uint8Array): void {
    this.object(new Uint8Array(bytes.length), undefined);
  }

  /** A view of all of a buffer shares it with others; one of a part is bytes of its own, whatever else is in the buffer. */
  private view(view: ArrayBufferView): void {
    const kind = viewKindOf(view);
    const { buffer, byteOffset, byteLength } = view;
    if (kind < 0 || !(buffer instanceof ArrayBuffer)) {
      throw this.error(`is a ${nameOf(view)}, which a snapshot does not hold`);
    }
    this.out.byte(MARK.view);
    this.out.byte(kind);
    const isWhole = byteLength === buffer.byteLength;
    this.buffer(isWhole ? buffer : buffer.slice(byteOffset, byteOffset + byteLength));
  }

  private buffer(buffer: ArrayBuffer): void {
    const known = this.objects.get(buffer);
    if (known !== undefined) {
      this.out.byte(MARK.known);
      return this.out.count(known);
    }
    this.objects.set(buffer, this.count);
    this.count += 1;
    this.tables.push(buffer);
    this.out.byte(MARK.buffer);
    return this.out.count(buffer.byteLength);
  }

  private within(step: string, value: unknown, twin: unknown): void {
    this.path.push(step);
    this.value(value, twin);
    this.path.pop();
  }

  private error(what: string): SnapshotError {
    return new SnapshotError(`${this.path.join('')} ${what}`);
  }
}

/** What the twin of `value` has in this field, if it is of the same kind. */
export function twinIn(value: object, twin: unknown, field: string): unknown {
  if (!isObject(twin) || prototypeOf(twin) !== prototypeOf(value)) return undefined;
  return fieldOf(twin, field);
}

function nameOf(value: object): string {
  return classNameOf(value) ?? 'thing without a class';
}
