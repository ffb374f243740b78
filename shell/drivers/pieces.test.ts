import { array, assert, constantFrom, property, record } from 'fast-check';
import { expect, test } from 'vitest';
import { ipv4 } from '../../core/index.ts';
import { Arena } from './arena.ts';
import { Channel } from './channel.ts';
import { Pieces } from './pieces.ts';

const HEADER = Uint8Array.of(1, 2);

/** Ports of peers and of local addresses: whether two are the same is a matter of the value, not of the object. */
const datagrams = array(
  record({
    size: constantFrom(0, 1, 5, 5, 5, 700, 1_100, 1_100, 1_100),
    times: constantFrom(1, 2, 70),
    isApart: constantFrom(false, false, false, true),
    isLent: constantFrom(true, true, true, false),
    header: constantFrom(undefined, undefined, undefined, HEADER),
    peer: constantFrom(1, 1, 2),
    local: constantFrom(undefined, 3, 3),
  }),
  { maxLength: 6 },
).map((runs) => runs.flatMap((run) => Array.from({ length: run.times }, () => run)));

interface Datagram {
  readonly size: number;
  readonly isApart: boolean;
  readonly isLent: boolean;
  readonly header: Uint8Array | undefined;
  readonly peer: number;
  readonly local: number | undefined;
}

test('datagrams make one piece when they lie together, are one train, and have one peer', () => {
  assert(
    property(datagrams, (sent) => {
      const arena = new Arena({ addressOf: () => 0 }, 512_000);
      const pieces = new Pieces(arena);
      const views = collect(sent, arena, pieces);
      const expected = groupsOf(sent);
      expect([...pieces.counts.subarray(0, expected.length)]).toEqual(
        expected.map(({ length }) => length),
      );
      const found = expected.flatMap((group, place) =>
        group.map((_, part) => pieces.payload(place, part)),
      );
      expect(found.map(placeOf)).toEqual(views.map(placeOf));
    }),
    { numRuns: 300 },
  );
});

function placeOf({ byteOffset, length }: Uint8Array): number[] {
  return [byteOffset, length];
}

/** As the outbox does, for one socket; the payloads. */
function collect(sent: readonly Datagram[], arena: Arena, pieces: Pieces): Uint8Array[] {
  const line = new Channel(1, 4, 65_535);
  let at = 64;
  return sent.map(({ size, isApart, isLent, header, peer, local }, n) => {
    // As much as a header is long, which must not be taken for it.
    if (isApart) at += HEADER.length;
    const view = new Uint8Array(arena.buffer, at, size);
    arena.lent = isLent ? view : undefined;
    arena.lentAt = at;
    at += size;
    const from = local === undefined ? undefined : ipv4(1, local);
    if (n > 0 && pieces.extend(line, header, view, ipv4(1, peer), from)) return view;
    line.last = pieces.add(header, view, ipv4(1, peer), from);
    return view;
  });
}

/** By the rules. */
function groupsOf(sent: readonly Datagram[]): (readonly Datagram[])[] {
  const groups: Datagram[][] = [];
  for (const one of sent) {
    const group = groups.at(-1);
    if (group !== undefined && canFollow(group, one)) group.push(one);
    else groups.push([one]);
  }
  return groups;
}

function canFollow(group: readonly Datagram[], one: Datagram): boolean {
  const together = [...group, one];
  const [first] = together;
  return (
    together.every(({ isLent, header }) => isLent && header === undefined) &&
    together.every(({ peer, local }) => peer === first?.peer && local === first.local) &&
    group.every(({ size }) => size === first?.size) &&
    !one.isApart &&
    one.size > 0 &&
    one.size <= (first?.size ?? 0) &&
    together.length <= 64 &&
    together.reduce((sum, { size }) => sum + size, 0) <= 65_000
  );
}
