/** Looking into objects of any kind, without believing anything of what is found. */

/** Undefined for an object that has none. */
export function prototypeOf(value: object): object | undefined {
  const prototype: unknown = Object.getPrototypeOf(value);
  return isObject(prototype) ? prototype : undefined;
}

/** Names of its own fields, in the order in which they came. */
export function fieldsOf(value: object): string[] {
  return Object.keys(value);
}

export function fieldOf(value: object, field: string): unknown {
  return Reflect.get(value, field);
}

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** The kinds of views of memory, by their place in this list. */
const VIEWS: readonly View[] = [
  { of: Uint8Array, bytes: 1, over: (buffer) => new Uint8Array(buffer) },
  { of: Int8Array, bytes: 1, over: (buffer) => new Int8Array(buffer) },
  { of: Uint16Array, bytes: 2, over: (buffer) => new Uint16Array(buffer) },
  { of: Int16Array, bytes: 2, over: (buffer) => new Int16Array(buffer) },
  { of: Uint32Array, bytes: 4, over: (buffer) => new Uint32Array(buffer) },
  { of: Int32Array, bytes: 4, over: (buffer) => new Int32Array(buffer) },
  { of: Float32Array, bytes: 4, over: (buffer) => new Float32Array(buffer) },
  { of: Float64Array, bytes: 8, over: (buffer) => new Float64Array(buffer) },
  { of: DataView, bytes: 1, over: (buffer) => new DataView(buffer) },
];

interface View {
  readonly of: new (buffer: ArrayBuffer) => ArrayBufferView;
  /** Of one element. */
  readonly bytes: number;
  readonly over: (buffer: ArrayBuffer) => ArrayBufferView;
}

/** -1 for a kind that no machine has. */
export function viewKindOf(view: ArrayBufferView): number {
  return VIEWS.findIndex((one) => view instanceof one.of);
}

/** A view over all of `buffer`; undefined where there is no such kind, or the buffer is no multiple of its elements. */
export function viewOver(kind: number, buffer: ArrayBuffer): ArrayBufferView | undefined {
  const view = VIEWS[kind];
  return view === undefined || buffer.byteLength % view.bytes !== 0 ? undefined : view.over(buffer);
}
