/**
 * The planes of a simulated process as its pumps drive them: the production machines, with everything that passes in and out
 * told to the oracles. A machine can be exchanged for another between two inputs: for one restored from its snapshot, say.
 */
import type { ControlInput, ControlMachine, ControlOutput } from '../../core/control-contract.ts';
import type {
  DataMachine,
  PlaneInput,
  PlaneOutput,
  PlaneTrain,
  Wake,
} from '../../core/plane-contract.ts';
import { instant, type Instant } from '../../core/time.ts';
import { eachInput, eachOutput, isTrainOutput } from '../../core/train.ts';

/** Who hears what goes through a watched plane. */
export interface PlaneWatch<Input, Output> {
  input(input: Input, now: Instant): void;
  timeout(now: Instant): void;
  output(output: Output): void;
}

export class WatchedData<Machine extends DataMachine> implements DataMachine {
  machine: Machine;
  readonly #watch: PlaneWatch<PlaneInput, PlaneOutput>;
  /** The datagrams of a train that was taken at once, until their outputs are known: oracles hear of them one by one. */
  #train: readonly PlaneInput[] = [];
  #trainAt: Instant = instant(0);

  constructor(machine: Machine, watch: PlaneWatch<PlaneInput, PlaneOutput>) {
    this.machine = machine;
    this.#watch = watch;
  }

  handleTrain(train: PlaneTrain, now: Instant): boolean {
    if (!this.machine.handleTrain(train, now)) return false;
    const inputs: PlaneInput[] = [];
    eachInput(train, (input) => inputs.push(input));
    this.#train = inputs;
    this.#trainAt = now;
    return true;
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
    if (this.#train.length > 0) this.#tellTrain(output);
    if (output !== undefined && !isTrainOutput(output)) this.#watch.output(output);
    return output;
  }

  /** Each datagram of the train with its own part of what became of all. */
  #tellTrain(output: PlaneOutput | undefined): void {
    const inputs = this.#train;
    this.#train = [];
    const sends: PlaneOutput[] = [];
    if (output !== undefined && isTrainOutput(output)) {
      eachOutput(output, (send) => sends.push(send));
    }
    for (const [place, input] of inputs.entries()) {
      this.#watch.input(input, this.#trainAt);
      const send = sends[place];
      if (send !== undefined) this.#watch.output(send);
    }
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
