/** What the view's answers oblige the machine to, checked after a client datagram from what was asked and put out. */
import { sameAddress } from '../../core/address.ts';
import type { Output } from '../../core/contract.ts';
import type { Instant } from '../../core/time.ts';
import type { Observer } from '../properties.ts';
import type { FlowHistory } from './flow-history.ts';
import * as properties from './properties.ts';
import { sourceAt } from './pools.ts';
import type { SimulatedView } from './view.ts';

/** One client datagram and what came of it. */
export interface Served {
  readonly source: number;
  readonly bytes: number;
  readonly now: Instant;
  readonly outputs: readonly Output[];
}

/** `view` is the one the machine was lent, `history` knows the call's outputs already. */
export function checkGuards(
  served: Served,
  history: FlowHistory,
  view: SimulatedView,
  observer: Observer,
): void {
  const { bytes, now } = served;
  const { guards } = view;
  const { forward, admits } = summaryOf(served.outputs);
  const isDenied = guards.keepsOut(sourceAt(served.source));
  observer.check(properties.KEPT_OUT, !isDenied || (forward === undefined && !admits));
  observer.check(properties.REFUSED_OUT, !admits || guards.refusalAt(now) === undefined);
  if (bytes === 0) {
    const isWanted = forward === undefined || history.forwardsEmpty(forward.flow);
    observer.check(properties.EMPTY_KNOWN, !admits && isWanted);
  }
  observer.check(properties.ASKED_ONCE, isAskedOnce(view, forward !== undefined, admits));
  noteRebinds(served.outputs, view, observer);
  if (forward === undefined) return;
  const { answered } = view;
  const isChosen = answered !== undefined && sameAddress(answered.address, forward.dst);
  const mayStay = guards.policyOf(forward.dst, view.lost) === 'keep';
  observer.check(properties.BY_FATE, mayStay || isChosen);
}

interface Summary {
  readonly forward: Extract<Output, { kind: 'SendToBackend' }> | undefined;
  /** Whether a flow was created. */
  readonly admits: boolean;
}

function summaryOf(outputs: readonly Output[]): Summary {
  let forward: Summary['forward'];
  let admits = false;
  for (const output of outputs) {
    if (output.kind === 'SendToBackend') forward = output;
    else if (output.kind === 'Metric' && output.event.kind === 'FlowCreated') admits = true;
  }
  return { forward, admits };
}

/** Who is forwarded was not denied; a flow of old meets its fate, and a new one may be refused. */
function isAskedOnce({ guards }: SimulatedView, forwards: boolean, admits: boolean): boolean {
  const { denialsAsked, refusalsAsked, fatesAsked } = guards;
  if (denialsAsked > 1 || refusalsAsked > 1 || fatesAsked > 1) return false;
  if (!forwards) return true;
  return (
    denialsAsked === 1 && (admits ? refusalsAsked === 1 : refusalsAsked === 0 && fatesAsked === 1)
  );
}

function noteRebinds(outputs: readonly Output[], view: SimulatedView, observer: Observer): void {
  const { answered, guards, questions } = view;
  if (questions === 0 || guards.fatesAsked === 0) return;
  const isClosed = outputs.some(({ kind }) => kind === 'CloseFlow');
  const opens = outputs.some(({ kind }) => kind === 'OpenUpstream');
  observer.check(properties.NOWHERE_TO_GO, answered === undefined && !isClosed);
  observer.check(properties.STAYED, answered !== undefined && !opens);
}
