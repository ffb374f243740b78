/**
 * However a process came to its configuration, it is as if it had started with it: what data planes were directed to be by all
 * commands so far is what a fresh control plane directs for the outcome. Health, ejections and what operators want of
 * backends are not of the configuration, and outlive its changes.
 */
import { ControlPlane } from '../../../core/control-plane.ts';
import {
  applyCommands,
  addressKey,
  EMPTY_STATE,
  servedConfig,
  type ControlState,
} from '../../../core/control-state.ts';
import { requestId, type RequestId } from '../../../core/brand.ts';
import type { Command, ConfigCommand, Reply } from '../../../core/commands.ts';
import type { Config } from '../../../core/config.ts';
import type { ControlInput, ControlOutput } from '../../../core/control-contract.ts';
import type { Report } from '../../../core/directives.ts';
import { reconcileState } from '../../../core/reconcile.ts';
import { sameValue } from '../../../core/same-value.ts';
import { instant } from '../../../core/time.ts';
import { always, type Property } from '../../properties.ts';
import type { ProcessNumber } from '../facts.ts';
import type { OracleKind } from '../oracle.ts';
import type { Verdicts } from '../verdicts.ts';
import { DirectedState } from './directed.ts';

const ALIKE: Property<'always'> = always('coming to a configuration is starting with it');
const QUIET: Property<'always'> = always('a command that changes nothing directs nothing');

export const RECONFIGURATION: OracleKind = {
  name: 'reconfiguration',
  begin: (verdicts) => {
    const processes = new Map<ProcessNumber, Configured>();
    const of = (process: ProcessNumber): Configured => {
      const known = processes.get(process) ?? new Configured(verdicts);
      processes.set(process, known);
      return known;
    };
    return {
      hearings: {
        ControlInput: ({ process, input }) => of(process).hearInput(input),
        ControlOutput: ({ process, output }) => of(process).hearOutput(output),
        // Nothing is under way then: it is told at the end of a phase, or of a process.
        Counted: ({ process }) => of(process).compare(),
        Crashed: ({ process }) => void processes.delete(process),
        Exited: ({ process }) => void processes.delete(process),
      },
    };
  },
};

class Configured {
  readonly #verdicts: Verdicts;
  readonly #directed = new DirectedState();
  readonly #commands = new Map<RequestId, Command>();
  #state: ControlState = EMPTY_STATE;
  /** What it would be if it had started with the present state, once that was asked. */
  #fresh: DirectedState | undefined;
  #stopping = false;
  /** Something was directed that changes what data planes are, since the last input. */
  #moved = false;

  constructor(verdicts: Verdicts) {
    this.#verdicts = verdicts;
  }

  hearInput(input: ControlInput): void {
    this.#moved = false;
    if (input.kind === 'Command') this.#commands.set(input.request, input.command);
    else if (input.kind === 'Reported') this.#reported(input.report);
  }

  hearOutput(output: ControlOutput): void {
    if (output.kind === 'Reply') return this.#replied(output.request, output.reply);
    if (output.kind !== 'Direct') return undefined;
    const { kind } = output.message.directive;
    this.#moved ||= kind.endsWith('Listener') || kind.endsWith('Cluster');
    return this.#directed.hear(output.message);
  }

  compare(): void {
    if (this.#stopping) return;
    const fresh = (this.#fresh ??= startedWith(servedConfig(this.#state)));
    this.#same('clusters', this.#directed.clusters, fresh.clusters);
    this.#same('listeners', byAddress(this.#directed), byAddress(fresh));
  }

  #same(
    what: string,
    has: ReadonlyMap<string, unknown>,
    wants: ReadonlyMap<string, unknown>,
  ): void {
    this.#verdicts.check(
      ALIKE,
      sameValue([...has.keys()].toSorted(), [...wants.keys()].toSorted()),
      () => {
        return `it has the ${what} ${[...has.keys()].join(', ')}; a fresh one ${[...wants.keys()].join(', ')}`;
      },
    );
    for (const [key, value] of wants) {
      this.#verdicts.check(ALIKE, sameValue(has.get(key), value), () => {
        return `of its ${what}, ${key} is ${JSON.stringify(has.get(key))}; a fresh one has ${JSON.stringify(value)}`;
      });
    }
  }

  #replied(request: RequestId, reply: Reply): void {
    const command = this.#commands.get(request);
    this.#commands.delete(request);
    if (command === undefined || !reply.ok) return;
    if (command.kind === 'SoftStop' || command.kind === 'HardStop') this.#stopping = true;
    const before = servedConfig(this.#state);
    this.#apply(command);
    const isSame = sameValue(before, servedConfig(this.#state));
    if (command.kind !== 'Reload' || !isSame) return;
    this.#verdicts.check(QUIET, !this.#moved, () => 'a reload of what there is moved something');
  }

  #apply(command: Command): void {
    this.#fresh = undefined;
    if (command.kind === 'Reload') {
      this.#state = stateOf(command.config);
      return;
    }
    if (!isConfigCommand(command)) return;
    const applied = applyCommands(this.#state, [command]);
    if (applied.ok) this.#state = applied.state;
  }

  /** A listener that did not open for good is not served any more, until it is activated anew. */
  #reported(report: Report): void {
    if (report.kind !== 'ListenerFailed' || report.retry !== undefined || this.#stopping) return;
    const { address, listener } = report;
    const current = this.#directed.listeners.get(listener);
    if (current === undefined || addressKey(current.address) !== addressKey(address)) return;
    this.#apply({ kind: 'DeactivateListener', address });
  }
}

function stateOf(config: Config): ControlState {
  const applied = applyCommands(EMPTY_STATE, reconcileState(EMPTY_STATE, config));
  return applied.ok ? applied.state : EMPTY_STATE;
}

/** What a control plane directs that hears of nothing but this configuration. */
function startedWith(config: Config): DirectedState {
  const fresh = new ControlPlane({ randomSeed: { high: 0, low: 0 } });
  const directed = new DirectedState();
  const command: Command = { kind: 'Reload', config };
  fresh.handleInput({ kind: 'Command', request: requestId(1), command }, instant(0));
  for (let output = fresh.pollOutput(); output !== undefined; output = fresh.pollOutput())
    if (output.kind === 'Direct') directed.hear(output.message);
  return directed;
}

function byAddress({ listeners }: DirectedState): Map<string, unknown> {
  return new Map([...listeners.values()].map((config) => [addressKey(config.address), config]));
}

const CONFIG_COMMANDS: ReadonlySet<string> = new Set<ConfigCommand['kind']>([
  'AddListener',
  'UpdateListener',
  'RemoveListener',
  'ActivateListener',
  'DeactivateListener',
  'AddFrontend',
  'RemoveFrontend',
  'AddCluster',
  'RemoveCluster',
  'AddBackend',
  'RemoveBackend',
  'SetWeight',
  'SetBackends',
  'SetGrace',
]);

function isConfigCommand(command: Command): command is ConfigCommand {
  return CONFIG_COMMANDS.has(command.kind);
}
