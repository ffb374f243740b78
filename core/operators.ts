/**
 * What operators ask beside changes of the configuration: states of backends, and questions about flows. One queue of what
 * that comes to, for the control plane to pass on.
 */
import type { Address } from './address.ts';
import { assertNever } from './assert.ts';
import type { BackendCommand } from './backend-commands.ts';
import { BackendStates, type DrainWake, type StatesOutput } from './backend-states.ts';
import type { RequestId } from './brand.ts';
import type { Command, Refused } from './commands.ts';
import type { Config } from './config.ts';
import type { ControlState } from './control-state.ts';
import type { Report } from './directives.ts';
import type { FlowCommand } from './flow-commands.ts';
import type { Hash64 } from './hash.ts';
import { Questions, type PreviewWake, type QuestionsOutput } from './questions.ts';
import type { Instant } from './time.ts';

export type OperatorCommand = BackendCommand | FlowCommand;

const KINDS: Readonly<Record<OperatorCommand['kind'], true>> = {
  DrainBackend: true,
  UndrainBackend: true,
  DisableBackend: true,
  ListFlows: true,
  ShowFlow: true,
  KillFlow: true,
  Why: true,
};

export function isOperatorCommand(command: Command): command is OperatorCommand {
  return command.kind in KINDS;
}

export type OperatorsOutput = StatesOutput | QuestionsOutput;

/** After each input, every output is polled before the next input. */
export class Operators {
  readonly states: BackendStates = new BackendStates();
  readonly questions: Questions;

  constructor(placementSeed: Hash64, isHealthy: (cluster: string, address: Address) => boolean) {
    this.questions = new Questions(placementSeed, (cluster, address) => ({
      healthy: isHealthy(cluster, address),
      state: this.states.stateOf(cluster, address),
    }));
  }

  /** Whether it changed anything, or why not; undefined when the reply comes later. */
  command(
    request: RequestId,
    command: OperatorCommand,
    now: Instant,
  ): { readonly ok: true; readonly changed: boolean } | Refused | undefined {
    switch (command.kind) {
      case 'DrainBackend':
      case 'UndrainBackend':
      case 'DisableBackend':
        return this.states.command(command, now);
      case 'ListFlows':
      case 'ShowFlow':
      case 'KillFlow':
      case 'Why':
        return this.questions.ask(request, command);
      default:
        return assertNever(command);
    }
  }

  /** A dry run of `config` over `state`; undefined when the reply comes later. */
  preview(request: RequestId, state: ControlState, config: Config): Refused | undefined {
    return this.questions.preview(request, state, config);
  }

  /** `generation`: of the configuration that holds now, for replies. */
  reported(
    report: Extract<Report, { kind: 'BackendFlows' | 'Answered' }>,
    generation: number,
    now: Instant,
  ): void {
    if (report.kind === 'BackendFlows') this.states.reported(report);
    else this.questions.answered(report, generation, now);
  }

  handleTimeout(generation: number, now: Instant): void {
    this.states.handleTimeout(now);
    this.questions.handleTimeout(generation, now);
  }

  pollOutput(): OperatorsOutput | undefined {
    return this.states.pollOutput() ?? this.questions.pollOutput();
  }

  nextWake(): DrainWake | PreviewWake | undefined {
    return this.questions.nextWake() ?? this.states.nextWake();
  }
}
