/**
 * A family that does nothing would be decoration. Each is on alone in a small world, and its trace is looked for in the facts;
 * the same world without any family shows none of these traces.
 */
import { describe, expect, test } from 'vitest';
import { sameIp } from '../../core/address.ts';
import { milliseconds } from '../../core/time.ts';
import { Observer } from '../properties.ts';
import type { Random } from '../random.ts';
import { seedFromNumber } from '../seed.ts';
import { crowd, resolver } from './actors/clients.ts';
import { cycles, operator } from './actors/operators.ts';
import { span } from './actors/phases.ts';
import {
  BACKEND_PORT,
  backendList,
  configOf,
  LISTENER_PORT,
  nattedOf,
  phasesOf,
  proxyAddress,
  proxyOf,
  worldOf,
} from './builders.ts';
import { chaos } from './chaos.ts';
import {
  BACKEND_FAMILIES,
  CLIENT_FAMILIES,
  CUT_FAMILIES,
  HOST_FAMILIES,
  LINK_FAMILIES,
  POWER_FAMILIES,
  type FamilyName,
} from './chaos-families.ts';
import type { Facts, Hearings, ProcessTotals } from './facts.ts';
import type { LossCause, PacketFate } from './packet.ts';
import { runWorldSeed } from './run-world.ts';
import type { WorldScenario } from './world-scenario.ts';

/** Calls `seen` when it hears what only this family makes. */
type Trace = (seen: () => void) => Hearings;

const TRACES: Readonly<Record<FamilyName, Trace>> = {
  slow: tripsOver(8),
  loss: lost('loss'),
  duplication: fate('duplicated'),
  reordering: fate('reordered'),
  corruption: fate('corrupted'),
  narrow: lost('too-big'),
  congestion: lost('queue-full'),
  partition: lost('partition'),
  hold: tripsOver(8),
  cut: lost('partition'),
  split: lost('partition'),
  descriptors: openFails('EMFILE'),
  ports: openFails('EADDRINUSE'),
  occupied: (seen) => ({
    DataInput: ({ input }) => {
      if (input.kind === 'ListenerAnswer' && input.errno === 'EADDRINUSE') seen();
    },
  }),
  absent: openFails('EADDRNOTAVAIL'),
  jam: (seen) => ({
    TurnEnded: ({ waiting }) => {
      if (waiting > 0) seen();
    },
  }),
  deaf: counted(({ kernelIn }) => kernelIn.overflowed),
  lag: hearsLate,
  small: counted(({ counters }) => counters.droppedTooBig),
  'no-buffers': counted(({ counters }) => counters.droppedSendError),
  stalls: counted(({ kernelOut }) => kernelOut.stalled),
  'listener-stalls': counted(({ kernelOut }) => kernelOut.stalled),
  'late-failures': counted(({ kernelOut }) => kernelOut.failedLate),
  'refusal-delay': (seen) => ({
    DataInput: ({ input }) => {
      if (input.kind === 'SendFailed' && input.failure.cause === 'refused') seen();
    },
  }),
  timers: (seen) => {
    let wanted: number | undefined;
    return {
      TurnEnded: ({ wake }) => void (wanted = wake?.at),
      DataTimeout: ({ now }) => {
        if (wanted !== undefined && now !== wanted) seen();
      },
    };
  },
  standstill: hearsLate,
  clock: counted(({ kernelIn }) => kernelIn.unheard),
  crash: lost('no-port', BACKEND_PORT),
  mute: unanswered,
  twice: answers(({ message }) => (message?.copy ?? 0) > 0),
  late: unanswered,
  elsewhere: answers(({ from }) => from.port !== backendList(1)[0]?.address.port),
  large: answers(({ bytes }) => bytes >= 400),
  power: lost('no-host'),
  remap: (seen) => {
    const ports = new Map<string, number>();
    return {
      Packet: ({ kind, packet: { sent, datagram } }) => {
        if (kind !== 'delivered' || sameIp(sent.src, datagram.src)) return;
        const key = `${sent.src.a}:${sent.src.port}`;
        if ((ports.get(key) ?? datagram.src.port) !== datagram.src.port) seen();
        ports.set(key, datagram.src.port);
      },
    };
  },
  reopen: (seen) => {
    const ports = new Map<number, number>();
    return {
      ClientSent: ({ client, src }) => {
        if ((ports.get(client) ?? src.port) !== src.port) seen();
        ports.set(client, src.port);
      },
    };
  },
};

const ALL: readonly FamilyName[] = [
  ...LINK_FAMILIES,
  ...CUT_FAMILIES,
  ...HOST_FAMILIES,
  ...BACKEND_FAMILIES,
  ...POWER_FAMILIES,
  ...CLIENT_FAMILIES,
];

/** A refusal can only be late where there is one. */
const COMPANIONS: Partial<Record<FamilyName, readonly FamilyName[]>> = {
  'refusal-delay': ['crash'],
};

describe('a fault family', () => {
  test.for(ALL)('%s bites', async (family) => {
    const always = [family, ...(COMPANIONS[family] ?? [])];
    expect(await tracesOf(always, [family])).toEqual([family]);
  });

  test('leaves no trace where it is off', async () => {
    expect(await tracesOf([], ALL)).toEqual([]);
  });
});

/** Those of `families` of which a trace is met within some seeds of a world that has `always`. */
async function tracesOf(
  always: readonly FamilyName[],
  families: readonly FamilyName[],
): Promise<FamilyName[]> {
  const met = new Set<FamilyName>();
  for (let seed = 0; seed < 6 && met.size < families.length; seed++) {
    await runWorldSeed(worldWith(always), seedFromNumber(seed), {
      observer: new Observer(),
      oracles: [],
      listen: (hub) => {
        for (const family of families) hub.join(TRACES[family](() => met.add(family)));
      },
    });
  }
  return [...met];
}

function worldWith(always: readonly FamilyName[]): WorldScenario {
  return {
    kind: 'world',
    name: 'one-family',
    purpose: 'a small world with nothing but some families of faults',
    reaches: [],
    plan: ({ config }) => ({ spec: smallWorld(), cast: castWith(always, config) }),
  };
}

function smallWorld(): ReturnType<typeof worldOf> {
  const hosts = [proxyAddress(0), proxyAddress(40)];
  const upstreamSources = hosts.map((host) => ({ ...host, port: 0 }));
  const settings = configOf(
    {
      backends: backendList(2),
      upstreamSources,
      frontTimeout: milliseconds(40),
      backTimeout: milliseconds(40),
    },
    { bindRetry: milliseconds(20) },
  );
  const nat = {
    ports: { first: 20_000, count: 1_000 },
    idle: milliseconds(60_000),
    mapping: 'endpoint-independent',
    filtering: 'endpoint-independent',
    rebinding: { numerator: 0, denominator: 1 },
  } as const;
  return worldOf(
    { clients: 8, backends: 2 },
    {
      proxies: [proxyOf(settings, { shape: { name: 'proxy0', addresses: hosts } })],
      phases: phasesOf(100, 900, 100, 1_500),
      ...nattedOf([nat, nat], { hosts: 2, clientsPerHost: 2 }),
    },
  );
}

function castWith(always: readonly FamilyName[], config: Random): ReturnType<typeof crowd> {
  const often = { bytes: [40, 300], burst: 3, rest: span(5, 60) };
  return {
    ...crowd('often', 6, resolver(often, { timeout: milliseconds(15) })),
    ...crowd('seldom', 2, resolver({ rest: span(60, 150) }), 6),
    operator: operator({ jobs: [cycles], every: span(150, 400) }),
    chaos: chaos(config, { always, every: span(5, 40), lasts: span(20, 120) }),
  };
}

/** With a port, of packets that were going there. */
function lost(cause: LossCause, port?: number): Trace {
  return (seen) => ({
    Packet: (one) => {
      if (one.kind !== 'lost' || one.cause !== cause) return;
      if (port === undefined || one.packet.datagram.dst.port === port) seen();
    },
  });
}

function fate(kind: PacketFate['kind']): Trace {
  return (seen) => ({
    Packet: (one) => {
      if (one.kind === kind) seen();
    },
  });
}

/** A packet that was under way for more than so many milliseconds. */
function tripsOver(limit: number): Trace {
  return (seen) => {
    const sent = new Map<number, number>();
    return {
      Packet: ({ kind, packet: { serial } }, at) => {
        if (kind === 'sent') sent.set(serial, at);
        else if (kind === 'delivered' && at - (sent.get(serial) ?? at) > milliseconds(limit))
          seen();
      },
    };
  };
}

function openFails(errno: string): Trace {
  return (seen) => ({
    DataInput: ({ input }) => {
      if (input.kind === 'OpenFailed' && input.errno === errno) seen();
    },
  });
}

function counted(count: (totals: ProcessTotals) => number): Trace {
  return (seen) => ({
    Counted: (totals) => {
      if (count(totals) > 0) seen();
    },
  });
}

function answers(isStrange: (sent: Facts['BackendSent']) => boolean): Trace {
  return (seen) => ({
    BackendSent: (sent) => {
      if (isStrange(sent)) seen();
    },
  });
}

/** A request that its backend has not answered 10 ms after it heard it. */
function unanswered(seen: () => void): Hearings {
  const due = new Map<string, number>();
  const name = (message: Facts['BackendSent']['message']): string =>
    `${message?.client}/${message?.serial}`;
  return {
    BackendHeard: ({ message }, at) => {
      for (const time of due.values()) if (at - time > milliseconds(10)) seen();
      due.set(name(message), at);
    },
    BackendSent: ({ message }) => void due.delete(name(message)),
  };
}

/** A process that hears of a datagram half a millisecond after it came. */
function hearsLate(seen: () => void): Hearings {
  let came: number | undefined;
  return {
    Packet: ({ kind, packet: { datagram } }, at) => {
      if (kind === 'delivered' && datagram.dst.port === LISTENER_PORT) came = at;
    },
    DataInput: ({ input }, at) => {
      if (input.kind !== 'ClientArrived') return;
      if (came !== undefined && at - came > milliseconds(0.5)) seen();
      came = undefined;
    },
  };
}
