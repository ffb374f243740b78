/**
 * What can be asked over the control socket: one zod schema for each command, so that nothing past here checks again. Words
 * and bounds are those of the configuration file; `settings` are its tables.
 */
import * as z from 'zod';
import type { Address } from '../../core/address.ts';
import { parseCidr, type Cidr } from '../../core/cidr.ts';
import { LIMITS } from '../../core/config.ts';
import { FLOWS_LISTED_MAX } from '../../core/flow-commands.ts';
import { ipPort } from '../config/ip-port.ts';
import { u32 } from '../config/key-notes.ts';
import { BACKEND, type BackendTable } from '../config/schema.ts';

/** Of request and reply. A field that is new does not change it; one that goes or changes its meaning does. */
export const PROTOCOL_VERSION = 1;

/** Keys of a table of the configuration file, not yet checked. */
export type Settings = Readonly<Record<string, unknown>>;

/** One type for each command, so that a command tells which it is. */
type Of<Command extends string, Rest = unknown> = Command extends string
  ? { readonly command: Command } & Rest
  : never;

interface AtBackend {
  readonly cluster: string;
  readonly address: Address;
}

interface FlowsWanted {
  readonly listener?: Address | undefined;
  readonly cluster?: string | undefined;
  readonly backend?: Address | undefined;
  readonly source?: Cidr | undefined;
  readonly limit: number;
}

/** What is answered from what is known, and changes nothing. */
export type Told =
  | Of<'status' | 'events' | 'state'>
  | Of<'metrics get', { readonly names?: readonly string[] | undefined }>
  | Of<'cluster list' | 'backend list', { readonly cluster?: string | undefined }>;

/** What is asked about live flows. */
export type AboutFlows =
  | Of<'flows list', FlowsWanted>
  | Of<'flows show' | 'flows kill', { readonly flow: string }>
  | Of<'why', { readonly client: Address; readonly listener?: Address | undefined }>;

/** What changes the configuration, or what an operator wants of a backend. */
export type Configuring =
  | Of<
      'listener udp add' | 'listener udp update',
      { readonly address: Address; readonly settings: Settings }
    >
  | Of<'listener udp remove' | 'listener udp deactivate', { readonly address: Address }>
  | Of<'frontend udp add' | 'frontend udp remove', AtBackend>
  | Of<'cluster add', { readonly cluster: string; readonly settings: Settings }>
  | Of<'cluster remove', { readonly cluster: string }>
  | OfBackend;

/** The part of it that is about one backend. */
export type OfBackend =
  | Of<'backend add', { readonly cluster: string; readonly backend: BackendTable }>
  | Of<'backend remove' | 'backend undrain', AtBackend>
  | Of<
      'backend drain',
      AtBackend & { readonly deadline_ms?: number | undefined; readonly force: boolean }
    >
  | Of<'backend disable', AtBackend & { readonly force: boolean }>
  | Of<'backend weight', AtBackend & { readonly weight: number }>;

export type ControlRequest =
  | Told
  | AboutFlows
  | Configuring
  | Of<'listener udp activate', { readonly address: Address }>
  | Of<'trace dump'>
  | Of<'reload', { readonly file?: string | undefined; readonly dry_run: boolean }>
  | Of<'shutdown', { readonly hard: boolean }>;

type CommandName = ControlRequest['command'];

/** What a request may look like, by its command. Envelope keys are `v`, `id` and `command`. */
export const REQUESTS: ReadonlyMap<string, z.ZodType<ControlRequest>> = new Map(
  [
    schemaOf('status', {}),
    schemaOf('events', {}),
    schemaOf('state', {}),
    schemaOf('metrics get', { names: z.array(z.string()).optional() }),
    ...(['listener udp add', 'listener udp update'] as const).map((command) =>
      schemaOf(command, { address: ipPort(), settings: settings() }),
    ),
    ...(['listener udp remove', 'listener udp activate', 'listener udp deactivate'] as const).map(
      (command) => schemaOf(command, { address: ipPort() }),
    ),
    ...(
      ['frontend udp add', 'frontend udp remove', 'backend remove', 'backend undrain'] as const
    ).map((command) => schemaOf(command, { cluster: clusterName(), address: ipPort() })),
    schemaOf('cluster add', { cluster: clusterName(), settings: settings() }),
    schemaOf('cluster remove', { cluster: clusterName() }),
    ...(['cluster list', 'backend list'] as const).map((command) =>
      schemaOf(command, { cluster: z.string().optional() }),
    ),
    schemaOf('backend add', { cluster: clusterName(), backend: BACKEND }),
    schemaOf('backend drain', {
      cluster: clusterName(),
      address: ipPort(),
      deadline_ms: u32().optional(),
      force: z.boolean().default(false),
    }),
    schemaOf('backend disable', {
      cluster: clusterName(),
      address: ipPort(),
      force: z.boolean().default(false),
    }),
    schemaOf('backend weight', {
      cluster: clusterName(),
      address: ipPort(),
      weight: z.int().min(0).max(LIMITS.backendWeightMax),
    }),
    schemaOf('reload', {
      file: absolutePath().optional(),
      dry_run: z.boolean().default(false),
    }),
    schemaOf('trace dump', {}),
    schemaOf('shutdown', { hard: z.boolean().default(false) }),
    schemaOf('flows list', {
      listener: ipPort().optional(),
      cluster: z.string().optional(),
      backend: ipPort().optional(),
      source: cidr().optional(),
      limit: z.int().min(0).max(FLOWS_LISTED_MAX).default(FLOWS_LISTED_MAX),
    }),
    ...(['flows show', 'flows kill'] as const).map((command) =>
      schemaOf(command, { flow: z.string().max(32) }),
    ),
    schemaOf('why', { client: ipPort(), listener: ipPort().optional() }),
  ].map(({ command, schema }) => [command, schema]),
);

const TOLD: readonly string[] = [
  'status',
  'events',
  'state',
  'metrics get',
  'cluster list',
  'backend list',
];

export function isTold(request: ControlRequest): request is Told {
  return TOLD.includes(request.command);
}

const ABOUT_FLOWS: readonly string[] = ['flows list', 'flows show', 'flows kill', 'why'];

export function isAboutFlows(request: ControlRequest): request is AboutFlows {
  return ABOUT_FLOWS.includes(request.command);
}

/** An operator's word that changes something, and is therefore written down. */
export function isMutation(request: ControlRequest): boolean {
  if (request.command === 'reload') return !request.dry_run;
  return request.command === 'flows kill' || !(isTold(request) || isAboutFlows(request));
}

function schemaOf<const Command extends CommandName, Shape extends z.ZodRawShape>(
  command: Command,
  shape: Shape,
): { command: Command; schema: z.ZodObject<Shape & { command: z.ZodLiteral<Command> }> } {
  const schema = z.strictObject({ ...shape, command: z.literal(command) });
  return { command, schema };
}

function settings(): z.ZodDefault<z.ZodRecord<z.ZodString, z.ZodUnknown>> {
  return z.record(z.string(), z.unknown()).default({});
}

/** As in a file: a table cannot have such a name. */
function clusterName(): z.ZodString {
  return z
    .string()
    .min(1)
    .refine((name) => name !== '__proto__' && name !== 'constructor', {
      error: 'a cluster cannot have this name',
      params: { fix: 'rename the cluster' },
    });
}

/** A client's folder is not the proxy's. */
function absolutePath(): z.ZodString {
  return z.string().refine((path) => path.startsWith('/') && !path.includes('\0'), {
    error: 'not an absolute path',
    params: { fix: 'write the whole path, from /' },
  });
}

function cidr(): z.ZodType<Cidr, string> {
  return z.string().transform((text, context): Cidr => {
    const parsed = parseCidr(text);
    if (parsed.ok) return parsed.cidr;
    context.addIssue({ code: 'custom', message: parsed.problem, params: { fix: parsed.fix } });
    return z.NEVER;
  });
}
