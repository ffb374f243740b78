/**
 * No new flow goes to a backend that an operator drains, has disabled or took away, from the moment that the data plane has
 * heard everything that was directed until the command was answered. A new socket of a flow that was there before is no new
 * flow. What is closed follows from the commands alone.
 */
import { formatAddress, type Address } from '../../../core/address.ts';
import type { RequestId } from '../../../core/brand.ts';
import type { Command } from '../../../core/commands.ts';
import type { Config } from '../../../core/config.ts';
import type { GeneratedDirective } from '../../../core/directives.ts';
import { always, sometimes, type Property } from '../../properties.ts';
import type { Facts } from '../facts.ts';
import type { OracleKind } from '../oracle.ts';
import { addressKey, type AddressKey } from '../packet.ts';
import { PerPlane, planesOf } from '../per-plane.ts';
import type { Line } from '../traffic/parcel.ts';
import { followTraffic } from '../traffic/traffic-book.ts';

const OPEN: Property<'always'> = always('a new flow goes to no backend that is closing or gone');
const CLOSES: Property<'sometimes'> = sometimes('a backend is closed to new flows by an operator');

export const CLOSED_BACKENDS: OracleKind = {
  name: 'closed-backends',
  begin: (verdicts, spec) => {
    const wishes = new PerPlane(() => new Wishes());
    const hearings = followTraffic(verdicts, spec, {
      opened: (line, how) => {
        if (how === 'renewed') return;
        verdicts.check(OPEN, wishes.of(line.process, line.plane).allows(line), () => {
          return `a flow of cluster ${line.terms.cluster} opens to ${formatAddress(line.backend)}`;
        });
      },
    });
    return {
      hearings: {
        ...hearings,
        Started: (fact, at) => {
          hearings.Started?.(fact, at);
          wishes.begin(fact.process, planesOf(spec, fact.proxy));
        },
        DataInput: (fact, at) => {
          const { process, plane, input } = fact;
          if (input.kind === 'Directed' && isForAll(input.message))
            wishes.of(process, plane).heard();
          hearings.DataInput?.(fact, at);
        },
        ControlInput: ({ process, input }) => {
          if (input.kind !== 'Command') return;
          for (const wish of wishes.all(process)) wish.asked(input.request, input.command);
        },
        ControlOutput: ({ process, output }) => {
          for (const wish of wishes.all(process)) if (wish.said(output)) verdicts.see(CLOSES);
        },
      },
    };
  },
};

/** By cluster and address: whether new flows may go there. What is not in it is gone. */
type Members = ReadonlyMap<string, ReadonlyMap<AddressKey, boolean>>;

/** What an operator wants, from when so many directives were heard; undefined while the command is not answered. */
interface Wish {
  readonly request: RequestId | undefined;
  readonly members: Members;
  from: number | undefined;
}

class Wishes {
  /** The oldest is the one that the data plane is known to have heard of. */
  #wishes: Wish[] = [{ request: undefined, members: new Map(), from: 0 }];
  #directed = 0;
  #heard = 0;

  asked(request: RequestId, command: Command): void {
    const members = this.#wishes.at(-1)?.members ?? new Map<string, never>();
    const wanted = after(members, command);
    if (wanted !== members) this.#wishes.push({ request, members: wanted, from: undefined });
  }

  /** Whether it is the answer to a command that closed something. */
  said(output: Facts['ControlOutput']['output']): boolean {
    if (output.kind === 'Direct' && isForAll(output.message)) this.#directed += 1;
    if (output.kind !== 'Reply') return false;
    const at = this.#wishes.findIndex(({ request }) => request === output.request);
    const wish = this.#wishes[at];
    if (wish === undefined) return false;
    if (output.reply.ok) wish.from = this.#directed;
    else this.#wishes.splice(at, 1);
    return output.reply.ok && isClosing(wish.members);
  }

  heard(): void {
    this.#heard += 1;
    this.#forgetOld();
  }

  /** While a command is on its way, what was before it holds too. */
  allows({ backend, cluster }: Line): boolean {
    this.#forgetOld();
    const key = addressKey(backend);
    const name = cluster.settings.cluster;
    return this.#wishes.some(({ members }) => members.get(name)?.get(key) === true);
  }

  #forgetOld(): void {
    for (let next = this.#wishes[1]; next !== undefined; next = this.#wishes[1]) {
      if (next.from === undefined || next.from > this.#heard) return;
      this.#wishes.shift();
    }
  }
}

/** A question may be for some planes only; it closes nothing. */
function isForAll({ directive }: GeneratedDirective): boolean {
  return directive.kind !== 'Query';
}

function isClosing(members: Members): boolean {
  for (const backends of members.values())
    for (const open of backends.values()) if (!open) return true;
  return false;
}

/** The very same where a command says nothing of backends. */
function after(members: Members, command: Command): Members {
  switch (command.kind) {
    case 'Reload':
      return reloaded(members, command.config);
    case 'AddCluster': {
      const { cluster } = command.settings;
      return withCluster(members, cluster, members.get(cluster) ?? new Map());
    }
    case 'RemoveCluster':
      return new Map([...members].filter(([name]) => name !== command.cluster));
    case 'SetBackends': {
      const known = members.get(command.cluster);
      const keys = command.backends.map(({ address }) => addressKey(address));
      return withCluster(members, command.cluster, kept(known, keys));
    }
    case 'AddBackend':
      return withBackend(members, command.cluster, command.backend.address, 'keep');
    default:
      return ofOne(members, command);
  }
}

/** What becomes of the backend that a command names. */
const OF_ONE = {
  RemoveBackend: 'gone',
  DrainBackend: false,
  DisableBackend: false,
  UndrainBackend: true,
} as const;

function ofOne(members: Members, command: Command): Members {
  switch (command.kind) {
    case 'RemoveBackend':
    case 'DrainBackend':
    case 'DisableBackend':
    case 'UndrainBackend':
      return withBackend(members, command.cluster, command.address, OF_ONE[command.kind]);
    default:
      return members;
  }
}

function reloaded(members: Members, { clusters }: Config): Members {
  return new Map(
    clusters.map(({ cluster, backends }) => {
      const keys = backends.map(({ address }) => addressKey(address));
      return [cluster, kept(members.get(cluster), keys)] as const;
    }),
  );
}

/** One that comes, or comes back, is open; one that stays is as it was. */
function kept(
  known: ReadonlyMap<AddressKey, boolean> | undefined,
  keys: readonly AddressKey[],
): ReadonlyMap<AddressKey, boolean> {
  return new Map(keys.map((key) => [key, known?.get(key) ?? true]));
}

function withBackend(
  members: Members,
  cluster: string,
  address: Address,
  wanted: boolean | 'keep' | 'gone',
): Members {
  const key = addressKey(address);
  const backends = new Map(members.get(cluster));
  if (wanted === 'gone') backends.delete(key);
  else backends.set(key, wanted === 'keep' ? (backends.get(key) ?? true) : wanted);
  return withCluster(members, cluster, backends);
}

function withCluster(
  members: Members,
  cluster: string,
  backends: ReadonlyMap<AddressKey, boolean>,
): Members {
  return new Map([...members, [cluster, backends]]);
}
