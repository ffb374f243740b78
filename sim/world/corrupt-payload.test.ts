import { describe, expect, test } from 'vitest';
import { chiSquareFits } from '../../test/chi-square.ts';
import { counted, LinkRig } from '../../test/link-rig.ts';

const SURELY = { numerator: 1, denominator: 1 };
const NEVER = { numerator: 0, denominator: 1 };

describe('corruption', () => {
  const payload = Uint8Array.from({ length: 40 }, (_, index) => index);

  test('a flip changes exactly one bit, any bit', () => {
    const bits = Array.from({ length: 320 }, () => 0);
    for (const changed of corrupted('flip', payload, 10_000)) {
      expect(changed).toHaveLength(40);
      const differing = bits.flatMap((_, bit) =>
        ((changed[bit >> 3]! ^ payload[bit >> 3]!) >> (bit & 7)) & 1 ? [bit] : [],
      );
      expect(differing).toHaveLength(1);
      bits[differing[0]!]!++;
    }
    expect(
      chiSquareFits(
        bits,
        bits.map(() => 1),
      ),
    ).toBe(true);
  });

  test('a cut leaves a beginning of any length, an extension adds 1 to 16 bytes', () => {
    const cuts = corrupted('cut', payload, 1_000);
    expect(new Set(cuts.map(({ length }) => length))).toEqual(
      new Set(counted(40).map((n) => n - 1)),
    );
    for (const cut of cuts) expect(cut).toEqual(payload.slice(0, cut.length));
    const longer = corrupted('extend', payload, 1_000);
    expect(new Set(longer.map(({ length }) => length))).toEqual(
      new Set(counted(16).map((more) => 40 + more)),
    );
    for (const one of longer) expect(one.slice(0, 40)).toEqual(payload);
  });

  test('what the checksum catches is lost, and so is what cannot be changed', () => {
    const corruption = { ratio: SURELY, caught: NEVER, ways: ['flip', 'cut'] as const };
    const empty = new LinkRig({ corruption });
    empty.offer(new Uint8Array(0));
    expect(empty.ledger.lost).toEqual(new Map([['checksum', 1]]));
    const rig = new LinkRig({
      corruption: { ...corruption, caught: { numerator: 1, denominator: 4 } },
    });
    for (let sent = 0; sent < 10_000; sent++) rig.offer(payload);
    rig.finish();
    const { corrupted: changed, lost } = rig.ledger;
    expect(chiSquareFits([lost.get('checksum')!, changed], [1, 3])).toBe(true);
  });

  test('a datagram of full length is not made longer', () => {
    const rig = new LinkRig({ corruption: { ratio: SURELY, caught: NEVER, ways: ['extend'] } });
    rig.offer(new Uint8Array(65_507));
    expect(rig.ledger.lost).toEqual(new Map([['checksum', 1]]));
  });

  test('the sent bytes are kept as they were', () => {
    const before = payload.slice();
    const rig = new LinkRig({ corruption: { ratio: SURELY, caught: NEVER, ways: ['flip'] } });
    rig.offer(payload);
    rig.finish();
    expect(rig.packets[0]!.packet.sent.payload).toEqual(before);
    expect(rig.packets[0]!.packet.datagram.payload).not.toEqual(payload);
  });
});

function corrupted(
  how: 'flip' | 'cut' | 'extend',
  payload: Uint8Array,
  count: number,
): Uint8Array[] {
  const rig = new LinkRig({ corruption: { ratio: SURELY, caught: NEVER, ways: [how] } });
  for (let sent = 0; sent < count; sent++) rig.offer(payload);
  rig.finish();
  expect(rig.ledger.corrupted).toBe(count);
  return rig.packets.map(({ packet }) => packet.datagram.payload);
}
