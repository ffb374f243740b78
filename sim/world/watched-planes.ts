/**
 * The planes of a simulated process as its pumps drive them: the production machines, with everything that passes in and out
 * told to the oracles. A machine can be exchanged for another between two inputs: for one restored from its snapshot, say.
 */
import type { ControlInput, ControlMachine, ControlOutput } from '../../core/control-contract.ts';
import type { DataMachine, PlaneInput, PlaneOutput, Wake } from '../../core/plane-contract.ts';
import type { Instant } from '../../core/time.ts';

/** Who hears what goes through a watched plane. */
export interface PlaneWatch<Input, Output> {
  input(input: Input, now: Instant): void;
  timeout(now: Instant): void;
  output(output: Output): void;
}

export class WatchedData<Machine extends DataMachine> implements DataMachine {
  machine: Machine;
  readonly #watch: PlaneWatch<PlaneInput, PlaneOutput>;

  constructor(machine: Machine, watch: PlaneWatch<PlaneInput, PlaneOutput>) {
    this.machine = machine;
    this.#watch = watch;
  }

  handleInput(input: PlaneInput, now: Instant): void {
    this.#watch.input(input, now);
    this.machine.handleInput(input, now);
  }

  handleTimeout(now: Instant): void {
    this.#watch.timeout(now);
    this.machine.handleTimeout(now);
  }

  pollOutput(): PlaneOutput | undefined {
    const output = this.machine.pollOutput();
    if (output !== undefined) this.#watch.output(output);
    return output;
  }

  pollTimeout(): Wake | undefined {
    return this.machine.pollTimeout();
  }
}

export class WatchedControl<Machine extends ControlMachine> implements ControlMachine {
  machine: Machine;
  readonly #watch: PlaneWatch<ControlInput, ControlOutput>;

  constructor(machine: Machine, watch: PlaneWatch<ControlInput, ControlOutput>) {
    this.machine = machine;
    this.#watch = watch;
  }

  handleInput(input: ControlInput, now: Instant): void {
    this.#watch.input(input, now);
    this.machine.handleInput(input, now);
  }

  handleTimeout(now: Instant): void {
    this.#watch.timeout(now);
    this.machine.handleTimeout(now);
  }

  pollOutput(): ControlOutput | undefined {
    const output = this.machine.pollOutput();
    if (output !== undefined) this.#watch.output(output);
    return output;
  }

  pollTimeout(): { readonly at: Instant } | undefined {
    return this.machine.pollTimeout();
  }
}
