/** The flow machine against a naive model of it (test/flow-model.ts), which predicts every output of every call. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { machines, steps, type Step } from '../test/flow-arbitraries.ts';
import { FlowModel, type ModelFlow } from '../test/flow-model.ts';
import { FlowRig } from '../test/flow-rig.ts';
import { flowId } from './brand.ts';
import type { Output } from './contract.ts';
import type { UdpFlow } from './flow.ts';

interface Predicted {
  readonly model: FlowModel;
  now: number;
}

test('whatever happens in whatever order, the outputs are those that the model predicts', () => {
  const commands = fc.commands([steps.map((step) => new Perform(step))], {
    maxCommands: 150,
    size: 'max',
  });
  fc.assert(
    fc.property(machines, commands, (machine, sequence) => {
      const setup = (): { model: Predicted; real: FlowRig } => ({
        model: { model: new FlowModel(machine), now: 0 },
        real: new FlowRig(machine),
      });
      fc.modelRun(setup, sequence);
    }),
    { numRuns: 200 },
  );
});

test('the steps that are drawn reach every kind of output, drop, shed and close', () => {
  const walks = fc.sample(fc.tuple(machines, fc.array(steps, { minLength: 100, maxLength: 100 })), {
    numRuns: 60,
    seed: 20_261_130,
  });
  const reached = new Set<string>();
  for (const [machine, walk] of walks) {
    const rig = new FlowRig(machine);
    let now = 0;
    for (const { wait, action } of walk) {
      now += wait;
      for (const output of rig.perform(action, now / 1_000_000)) reached.add(nameOf(output));
      if (rig.manager.flow(flowId(0))?.phase === 'Lingering') reached.add('Lingering');
    }
  }
  expect([...reached].sort()).toEqual([
    'ArmTimer',
    'CloseFlow Aborted',
    'CloseFlow BackendLost',
    'CloseFlow Drain',
    'CloseFlow Idle',
    'CloseFlow Killed',
    'CloseFlow RequestsReached',
    'CloseFlow ResponsesReached',
    'DatagramIn',
    'DatagramOut',
    'Drop Amplification',
    'Drop DatagramRate',
    'Drop Denied',
    'Drop Invalid',
    'Drop NewFlowRate',
    'Drop NoBackend',
    'Drop PortExhausted',
    'Drop Shed',
    'Drop Truncated',
    'Drop UnknownFlow',
    'FlowCreated',
    'FlowEvicted',
    'FlowRebound',
    'FlowShed',
    'FlowShedSourceLimit',
    'HeaderRefused',
    'Lingering',
    'LoopRefused',
    'OpenUpstream',
    'SendToBackend',
    'SendToBackend with a header',
    'SendToClient',
  ]);
});

class Perform implements fc.Command<Predicted, FlowRig> {
  private readonly step: Step;

  constructor(step: Step) {
    this.step = step;
  }

  check(): boolean {
    return true;
  }

  run(predicted: Predicted, rig: FlowRig): void {
    const { model } = predicted;
    predicted.now += this.step.wait;
    const expected = model.perform(this.step.action, predicted.now);
    expect(rig.perform(this.step.action, predicted.now / 1_000_000)).toEqual(expected);
    const { manager } = rig;
    expect(rig.selections).toBe(model.selections);
    expect(manager.flowCount).toBe(model.flows.length);
    expect(manager.pollTimeout()).toBe(model.armed);
    expect(manager.isDraining).toBe(model.draining);
    for (const flow of model.flows) expect(manager.flow(flowId(flow.id))).toEqual(seen(flow));
  }

  toString(): string {
    return `+${this.step.wait} µs ${JSON.stringify(this.step.action)}`;
  }
}

function nameOf(output: Output): string {
  if (output.kind === 'Metric') return output.event.kind;
  if (output.kind === 'Drop' || output.kind === 'CloseFlow') {
    return `${output.kind} ${output.reason}`;
  }
  const headed = output.kind === 'SendToBackend' && output.prefix !== undefined;
  return headed ? `${output.kind} with a header` : output.kind;
}

function seen(flow: ModelFlow): unknown {
  const { serial, born, client, local, backend, config, requests, responses, deadline } = flow;
  return {
    serial,
    createdAt: born,
    client,
    local,
    backend,
    config,
    phase: flow.lingers ? 'Lingering' : 'Established',
    requestsSeen: requests,
    responsesSeen: responses,
    idleDeadline: deadline,
  } satisfies Record<keyof UdpFlow, unknown>;
}
