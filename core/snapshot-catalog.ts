/** Classes and shared objects by name, and a fingerprint of them: a snapshot is read by the code that wrote it, or not. */
import { present } from './assert.ts';
import { fieldsOf, fieldOf, prototypeOf } from './snapshot-objects.ts';
import { sipHash13 } from './hash.ts';

/** By the name of its class, what makes any instance of it. */
export type Makers = Readonly<Record<string, () => object>>;

export interface SnapshotClass {
  readonly name: string;
  readonly prototype: object;
  readonly fields: readonly string[];
  /** Undefined for a class whose instances are made with their machine, and with it only. */
  readonly make: (() => object) | undefined;
}

export class SnapshotCatalog {
  /** Of the classes' names and fields, the shared objects' names, and the order of bytes in this processor's numbers. */
  readonly fingerprint: number;
  private readonly machines: Readonly<Record<string, object>>;
  private readonly byPrototype = new Map<object, SnapshotClass>();
  private readonly byName = new Map<string, SnapshotClass>();
  private readonly names = new Map<object, string>();
  private readonly constants = new Map<string, object>();

  /** `machines`: one of each kind, as it is made; what a machine has then need not be made anew. */
  constructor(
    makers: Makers,
    constants: Readonly<Record<string, object>>,
    machines: Readonly<Record<string, object>>,
  ) {
    this.machines = machines;
    for (const [name, make] of Object.entries(makers)) this.learn(name, make(), make);
    for (const [name, value] of Object.entries(constants)) this.share(name, value);
    const seen = new Set<object>();
    for (const machine of Object.values(machines)) this.discover(machine, seen);
    this.fingerprint = this.digest();
  }

  classOf(value: object): SnapshotClass | undefined {
    return this.byPrototype.get(prototypeOf(value) ?? value);
  }

  classNamed(name: string): SnapshotClass | undefined {
    return this.byName.get(name);
  }

  /** The name of an object that modules share; undefined for any other. */
  nameOf(value: object): string | undefined {
    return this.names.get(value);
  }

  constantNamed(name: string): object | undefined {
    return this.constants.get(name);
  }

  /** A machine of this class as it is made; undefined when it is none. */
  blankOf(machine: object): object | undefined {
    const name = this.classOf(machine)?.name;
    return name === undefined ? undefined : this.machines[name];
  }

  private learn(name: string, sample: object, make: SnapshotClass['make']): void {
    const prototype = present(prototypeOf(sample), 'an instance has a class');
    const one = { name, prototype, fields: fieldsOf(sample), make };
    this.byPrototype.set(prototype, one);
    this.byName.set(name, one);
  }

  /** With the plain data in it, for parts of it are shared too. */
  private share(name: string, value: object): void {
    this.names.set(value, name);
    this.constants.set(name, value);
    for (const field of fieldsOf(value)) {
      const part = fieldOf(value, field);
      if (typeof part === 'object' && part !== null) this.share(`${name}.${field}`, part);
    }
  }

  private discover(value: object, seen: Set<object>): void {
    if (seen.has(value) || this.names.has(value) || ArrayBuffer.isView(value)) return;
    seen.add(value);
    const prototype = prototypeOf(value);
    if (prototype !== Object.prototype && this.classOf(value) === undefined) {
      const name = classNameOf(value);
      if (name !== undefined && !isBuiltIn(value)) this.learn(name, value, undefined);
    }
    for (const field of fieldsOf(value)) {
      const part = fieldOf(value, field);
      if (typeof part === 'object' && part !== null) this.discover(part, seen);
    }
  }

  private digest(): number {
    const classes = [...this.byName.values()].map(
      ({ name, fields }) => `${name}(${fields.join()})`,
    );
    const text = [...classes.toSorted(), ...this.constants.keys()].join(';');
    const order = new Uint8Array(Int32Array.of(1).buffer);
    const bytes = [...order, ...Array.from(text, (letter) => letter.charCodeAt(0) & 255)];
    return sipHash13(Uint8Array.from(bytes)).low | 0;
  }
}

/** As its source has it. */
export function classNameOf(value: object): string | undefined {
  const { constructor } = value;
  return typeof constructor === 'function' ? constructor.name : undefined;
}

function isBuiltIn(value: object): boolean {
  return Array.isArray(value) || value instanceof Map || value instanceof Set;
}
