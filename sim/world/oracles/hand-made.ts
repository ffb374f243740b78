/** Histories made by hand, for tests of oracles: facts in a row, of a small world unless told otherwise. */
import { instant } from '../../../core/time.ts';
import { configOf, populationOf, proxyOf, QUIET_LINK, SHORT_PHASES } from '../builders.ts';
import type { FactKind, Facts, ProcessSample } from '../facts.ts';
import { judge, type History, type Told } from '../history.ts';
import type { OracleKind } from '../oracle.ts';
import type { WorldSpec } from '../spec.ts';

/** A world of one proxy, one backend and two clients. */
const SMALL_WORLD: WorldSpec = {
  phases: SHORT_PHASES,
  link: QUIET_LINK,
  proxies: [proxyOf(configOf({}))],
  ...populationOf({ clients: 2, backends: 1 }),
  withinTolerance: true,
};

/** A fact, `at` in microseconds of virtual time. */
export function told<Kind extends FactKind>(
  kind: Kind,
  fact: Facts[Kind],
  at = 0,
): { readonly kind: Kind; readonly fact: Facts[Kind]; readonly at: ReturnType<typeof instant> } {
  return { kind, fact, at: instant(at) };
}

/** What an oracle has against a history, in one line; undefined when it has nothing. */
export function objectionOf(
  kind: OracleKind,
  history: History,
  spec: WorldSpec = SMALL_WORLD,
): string | undefined {
  const objection = judge(kind, { spec, history });
  return objection && `${objection.property}: ${objection.detail}`;
}

/** A process that does nothing, between two turns. */
export function turn(given: Partial<ProcessSample> = {}, at = 0): Told {
  const sample: ProcessSample = {
    process: 1,
    plane: 0,
    now: instant(at),
    flows: 0,
    waiting: 0,
    descriptors: 0,
    listeners: 0,
    upstreams: 0,
    probes: 0,
    wake: undefined,
    turns: 1,
    idleTurns: 0,
  };
  return told('TurnEnded', { ...sample, ...given }, at);
}
