/**
 * A proxy's machines and their shadows: every input goes to both, and everything that comes out of both must be the same. The
 * shadows are exchanged now and then for machines that were restored from their snapshots; the straight ones never are.
 */
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import type { ControlInput, ControlMachine, ControlOutput } from '../core/control-contract.ts';
import { ControlPlane } from '../core/control-plane.ts';
import { DataPlane } from '../core/data-plane.ts';
import type {
  DataMachine,
  PlaneInput,
  PlaneOutput,
  PlaneTrain,
  Wake,
} from '../core/plane-contract.ts';
import { restoreProxy, snapshotProxy } from '../core/proxy-snapshot.ts';
import { restoreSnapshot, takeSnapshot } from '../core/snapshot.ts';
import type { Instant } from '../core/time.ts';
import { ControlBench, controlOptions, planeOptions } from './control-bench.ts';

export class MirrorBench {
  readonly bench: ControlBench;
  /** Outputs that were compared. */
  compared = 0;
  private shadows = {
    data: new DataPlane(planeOptions()),
    control: new ControlPlane(controlOptions(2)),
  };

  constructor() {
    this.bench = new ControlBench(2, {
      data: (straight) => new MirroredData(straight, this),
      control: (straight) => new MirroredControl(straight, this),
    });
  }

  get data(): DataPlane {
    return this.shadows.data;
  }

  get control(): ControlPlane {
    return this.shadows.control;
  }

  /** The shadows give way to others, restored one by one or together; all of them say the same of themselves. */
  exchange(how: 'each' | 'together'): void {
    const { data, control } = this.shadows;
    const straight = { data: this.bench.plane, control: this.bench.control };
    const fresh = {
      data: new DataPlane(planeOptions()),
      control: new ControlPlane(controlOptions(2)),
    };
    if (how === 'together') {
      const bytes = snapshotProxy({ data, control });
      expectSame(snapshotProxy(straight), bytes);
      restoreProxy(fresh, bytes);
      expectSame(snapshotProxy(fresh), bytes);
    } else {
      for (const plane of ['data', 'control'] as const) {
        const bytes = takeSnapshot(this.shadows[plane]);
        expectSame(takeSnapshot(straight[plane]), bytes);
        restoreSnapshot(fresh[plane], bytes);
        expectSame(takeSnapshot(fresh[plane]), bytes);
      }
    }
    this.shadows = fresh;
  }

  compare(straight: unknown, shadow: unknown): void {
    this.compared += 1;
    // Of equal things this is many times faster, and of others it says nothing.
    if (!isDeepStrictEqual(straight, shadow)) expect(shadow).toEqual(straight);
  }
}

class MirroredData implements DataMachine {
  readonly #straight: DataPlane;
  readonly #mirror: MirrorBench;

  constructor(straight: DataPlane, mirror: MirrorBench) {
    this.#straight = straight;
    this.#mirror = mirror;
  }

  handleInput(input: PlaneInput, now: Instant): void {
    // Copies, so that no machine shares with another, or with what it was given before.
    this.#straight.handleInput(structuredClone(input), now);
    this.#mirror.data.handleInput(structuredClone(input), now);
  }

  handleTrain(train: PlaneTrain, now: Instant): boolean {
    const isTaken = this.#straight.handleTrain(structuredClone(train), now);
    this.#mirror.compare(isTaken, this.#mirror.data.handleTrain(structuredClone(train), now));
    return isTaken;
  }

  handleTimeout(now: Instant): void {
    this.#straight.handleTimeout(now);
    this.#mirror.data.handleTimeout(now);
  }

  pollOutput(): PlaneOutput | undefined {
    const output = this.#straight.pollOutput();
    this.#mirror.compare(output, this.#mirror.data.pollOutput());
    return output;
  }

  pollTimeout(): Wake | undefined {
    const wake = this.#straight.pollTimeout();
    this.#mirror.compare(wake, this.#mirror.data.pollTimeout());
    return wake;
  }
}

class MirroredControl implements ControlMachine {
  readonly #straight: ControlPlane;
  readonly #mirror: MirrorBench;

  constructor(straight: ControlPlane, mirror: MirrorBench) {
    this.#straight = straight;
    this.#mirror = mirror;
  }

  handleInput(input: ControlInput, now: Instant): void {
    this.#straight.handleInput(structuredClone(input), now);
    this.#mirror.control.handleInput(structuredClone(input), now);
  }

  handleTimeout(now: Instant): void {
    this.#straight.handleTimeout(now);
    this.#mirror.control.handleTimeout(now);
  }

  pollOutput(): ControlOutput | undefined {
    const output = this.#straight.pollOutput();
    this.#mirror.compare(output, this.#mirror.control.pollOutput());
    return output;
  }

  pollTimeout(): { readonly at: Instant } | undefined {
    const wake = this.#straight.pollTimeout();
    this.#mirror.compare(wake, this.#mirror.control.pollTimeout());
    return wake;
  }
}

/** Byte for byte. A million of them are too many for a difference that anybody reads. */
export function expectSame(one: Uint8Array, other: Uint8Array): void {
  expect(one.length).toBe(other.length);
  if (Buffer.compare(one, other) === 0) return;
  const at = one.findIndex((byte, index) => byte !== other[index]);
  expect(at, 'the first byte that differs').toBe(-1);
}
