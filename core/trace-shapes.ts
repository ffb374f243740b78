/**
 * Data of a trace as what it has to be. What the replay itself reads is checked all through; of commands, directives and
 * reports the kind, because each machine judges the rest as it judges any other.
 */
import type { Address } from './address.ts';
import { requestId, type RequestId } from './brand.ts';
import type { Command } from './commands.ts';
import type { ControlOptions } from './control-plane.ts';
import type { Directive, GeneratedDirective, Report } from './directives.ts';
import type { Hash64 } from './hash.ts';
import type { TableSeed } from './keyed-hash.ts';
import type { PlaneOptions } from './plane-contract.ts';
import { instant, type Instant } from './time.ts';
import type { ByteReader } from './trace-bytes.ts';
import type { TraceHeader } from './trace-header.ts';

type Table = Readonly<Record<string, unknown>>;

const COMMANDS: Readonly<Record<Command['kind'], true>> = {
  AddListener: true,
  UpdateListener: true,
  RemoveListener: true,
  ActivateListener: true,
  DeactivateListener: true,
  AddFrontend: true,
  RemoveFrontend: true,
  AddCluster: true,
  RemoveCluster: true,
  AddBackend: true,
  RemoveBackend: true,
  SetWeight: true,
  SetBackends: true,
  SetGrace: true,
  SetAccessLog: true,
  DrainBackend: true,
  UndrainBackend: true,
  DisableBackend: true,
  ListFlows: true,
  ShowFlow: true,
  KillFlow: true,
  Why: true,
  Preview: true,
  Reload: true,
  SoftStop: true,
  HardStop: true,
  Status: true,
};

const DIRECTIVES: Readonly<Record<Directive['kind'], true>> = {
  SetCluster: true,
  RemoveCluster: true,
  AddListener: true,
  UpdateListener: true,
  RemoveListener: true,
  SetHealth: true,
  SetBackendState: true,
  SetProbeTime: true,
  SetAccessLog: true,
  Query: true,
  Drain: true,
  Stop: true,
};

const REPORTS: Readonly<Record<Report['kind'], true>> = {
  ListenerOpened: true,
  ListenerFailed: true,
  ListenerClosed: true,
  ListenerRestarted: true,
  BackendRefused: true,
  BackendTraffic: true,
  BackendFlows: true,
  Answered: true,
  UpstreamFailed: true,
  FlowEnded: true,
  FlowEndsSuppressed: true,
  Drained: true,
  Stopped: true,
};

export function readHeader(value: unknown, where: ByteReader): TraceHeader {
  const header = tableOf(value, 'the header', where);
  const [plane, control] = [header['plane'], header['control']];
  return {
    build: textAt(header, 'build', where),
    runtime: textAt(header, 'runtime', where),
    writtenAt: textAt(header, 'writtenAt', where),
    reason: textAt(header, 'reason', where),
    configuration: textAt(header, 'configuration', where),
    plane: readPlane(tableOf(plane, 'the options of the data plane', where), where),
    control: readControl(tableOf(control, 'the options of the control plane', where), where),
  };
}

export interface StartShape {
  readonly at: Instant;
  /** Whether blocks of it follow. */
  readonly snapshot: boolean;
  readonly directives: readonly GeneratedDirective[];
  readonly reports: readonly Report[];
}

export function readStart(value: unknown, where: ByteReader): StartShape {
  const start = tableOf(value, 'the start of a segment', where);
  const at = numberAt(start, 'at', where);
  if (!Number.isSafeInteger(at) || at < 0) throw where.damage('a segment that starts at no time');
  return {
    at: instant(at),
    snapshot: start['snapshot'] === true,
    directives: listAt(start, 'directives', where).map((one) => readDirective(one, where)),
    reports: listAt(start, 'reports', where).map((one) => readReport(one, where)),
  };
}

export function readDirective(value: unknown, where: ByteReader): GeneratedDirective {
  const message = tableOf(value, 'a directive', where);
  const { directive } = message;
  if (!isDirective(directive)) throw where.damage('a directive of no kind that there is');
  return { generation: numberAt(message, 'generation', where), directive };
}

export function readReport(value: unknown, where: ByteReader): Report {
  if (!isReport(value)) throw where.damage('a report of no kind that there is');
  return value;
}

export function readCommand(
  value: unknown,
  where: ByteReader,
): { readonly request: RequestId; readonly command: Command } {
  const { request, command } = tableOf(value, 'a command', where);
  if (!isCommand(command)) throw where.damage('a command of no kind that there is');
  if (typeof request !== 'number') throw where.damage('a command without a number');
  return { request: requestId(request), command };
}

function readPlane(options: Table, where: ByteReader): PlaneOptions {
  const { closesPerTurn, restartsPerMinute } = options;
  return {
    placementSeed: readHash(options['placementSeed'], where),
    tableSeed: readTableSeed(options['tableSeed'], where),
    randomSeed: readHash(options['randomSeed'], where),
    ...(options['hosts'] === undefined
      ? {}
      : { hosts: listAt(options, 'hosts', where).map((one) => readAddress(one, where)) }),
    ...(closesPerTurn === undefined
      ? {}
      : { closesPerTurn: numberAt(options, 'closesPerTurn', where) }),
    ...(restartsPerMinute === undefined
      ? {}
      : { restartsPerMinute: numberAt(options, 'restartsPerMinute', where) }),
  };
}

function readControl(options: Table, where: ByteReader): ControlOptions {
  const { placementSeed, probesInFlightMax } = options;
  return {
    randomSeed: readHash(options['randomSeed'], where),
    ...(placementSeed === undefined ? {} : { placementSeed: readHash(placementSeed, where) }),
    ...(probesInFlightMax === undefined
      ? {}
      : { probesInFlightMax: numberAt(options, 'probesInFlightMax', where) }),
  };
}

function readHash(value: unknown, where: ByteReader): Hash64 {
  const hash = tableOf(value, 'a seed', where);
  return { high: numberAt(hash, 'high', where), low: numberAt(hash, 'low', where) };
}

function readTableSeed(value: unknown, where: ByteReader): TableSeed {
  const seed = tableOf(value, 'a seed', where);
  return { first: numberAt(seed, 'first', where), second: numberAt(seed, 'second', where) };
}

function readAddress(value: unknown, where: ByteReader): Address {
  if (!isAddress(value)) throw where.damage('an address that is none');
  return value;
}

/** Whether data is an address. */
export function isAddress(value: unknown): value is Address {
  if (!isTable(value)) return false;
  const { family, a, b, c, d, port, scope } = value;
  const isWhole = [a, b, c, d, port, scope].every((word) => Number.isInteger(word));
  return isWhole && (family === 4 || family === 6);
}

function isDirective(value: unknown): value is Directive {
  return hasKindOf(value, DIRECTIVES);
}

function isReport(value: unknown): value is Report {
  return hasKindOf(value, REPORTS);
}

function isCommand(value: unknown): value is Command {
  return hasKindOf(value, COMMANDS);
}

function hasKindOf(value: unknown, kinds: Readonly<Record<string, true>>): boolean {
  return isTable(value) && typeof value['kind'] === 'string' && Object.hasOwn(kinds, value['kind']);
}

function isTable(value: unknown): value is Table {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function tableOf(value: unknown, what: string, where: ByteReader): Table {
  if (!isTable(value)) throw where.damage(`${what} is no table`);
  return value;
}

function textAt(table: Table, key: string, where: ByteReader): string {
  const value = table[key];
  if (typeof value !== 'string') throw where.damage(`${key} is no text`);
  return value;
}

function numberAt(table: Table, key: string, where: ByteReader): number {
  const value = table[key];
  if (typeof value !== 'number') throw where.damage(`${key} is no number`);
  return value;
}

function listAt(table: Table, key: string, where: ByteReader): readonly unknown[] {
  const value = table[key];
  if (!Array.isArray(value)) throw where.damage(`${key} is no list`);
  return value;
}
