/** What the core and the shell answer, as replies of the control socket. */
import {
  assertNever,
  formatAddress,
  type Answer,
  type CommandError,
  type Reply,
} from '../../core/index.ts';
import { advice } from '../advice.ts';
import type { ReloadOutcome } from '../commands/reload.ts';
import type { Problem } from '../config/problem.ts';
import type { ListenerFailed } from '../proxy.ts';
import type { WireReply } from './codec.ts';
import { flowView, type View } from './views.ts';

export function toWire(reply: Reply): WireReply {
  if (!reply.ok) return refusal(reply.error);
  const { changed, generation, answer } = reply;
  return { ok: true, changed, generation, answer: answer && answerView(answer) };
}

/** `kind` is one of the core's, or `BadRequest`, `CannotListen`, `Busy` or `Failed`. */
export function refusal(
  { kind, message }: Pick<CommandError, 'message'> & { readonly kind: string },
  problems?: readonly Problem[],
): WireReply {
  return { ok: false, error: { kind, message, problems } };
}

export function badRequest(problems: readonly Problem[]): WireReply {
  return refusal({ kind: 'BadRequest', message: 'the request is not right' }, problems);
}

export function cannotListen({ address, errno }: ListenerFailed): WireReply {
  const message = `cannot listen on ${formatAddress(address)}: ${errno}${advice(errno)}`;
  return refusal({ kind: 'CannotListen', message });
}

/** A reload that left a listener closed was done; the answer says which. */
export function reloadReply(outcome: ReloadOutcome, atNextStart: readonly string[]): WireReply {
  if (!outcome.ok) return refusal(outcome.error, outcome.problems);
  const { changed, generation, commands, failures, problems } = outcome;
  const failed = failures.map(({ address, errno }) => `${formatAddress(address)}: ${errno}`);
  const answer = { commands, problems, not_listening: failed, at_next_start: atNextStart };
  return { ok: true, changed, generation, answer };
}

/** Of answers that look the same for every asker. */
function answerView(answer: Answer): View | undefined {
  switch (answer.kind) {
    case 'Flow':
    case 'Killed':
      return flowView(answer.flow);
    case 'Status':
    case 'Reloaded':
    case 'Previewed':
    case 'Flows':
    case 'Why':
      return undefined;
    default:
      return assertNever(answer);
  }
}
