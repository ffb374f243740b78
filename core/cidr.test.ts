/** Address blocks as text, and lists of them against a naive scan. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { address } from '../test/flow-rig.ts';
import { ipv4, ipv6, type Address } from './address.ts';
import { ACCESS_RULES_MAX, AccessList, formatCidr, parseCidr, type Cidr } from './cidr.ts';

describe('text of address blocks', () => {
  test.each([
    ['10.0.0.0/8', '10.0.0.0/8'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['192.0.2.1', '192.0.2.1/32'],
    ['255.255.255.255/32', '255.255.255.255/32'],
    ['2001:DB8:0::/32', '2001:db8::/32'],
    ['::/0', '::/0'],
    ['::1', '::1/128'],
    ['::ffff:10.0.0.0/104', '10.0.0.0/8'],
    ['::ffff:0:0/96', '0.0.0.0/0'],
    ['::ffff:192.0.2.1', '192.0.2.1/32'],
  ])('%s is the block %s', (text, canonical) => {
    expect(formatCidr(cidr(text))).toBe(canonical);
  });

  test.each([
    ['', '"" is not an IP address'],
    ['example.org/8', '"example.org" is not an IP address'],
    ['10.0.0.0:53/8', '"10.0.0.0:53" is not an IP address'],
    ['10.0.0/8', '"10.0.0" is not an IP address'],
    ['10.0.0.0/33', '"33" is not a prefix length: write 0 to 32'],
    ['::/129', '"129" is not a prefix length: write 0 to 128'],
    ['10.0.0.0/', '"" is not a prefix length'],
    ['10.0.0.0/08', '"08" is not a prefix length'],
    ['10.0.0.0/255.0.0.0', '"255.0.0.0" is not a prefix length'],
    ['10.0.0.0/8/8', '"8/8" is not a prefix length'],
    ['10.0.0.0/-1', '"-1" is not a prefix length'],
    ['fe80::%3/10', 'a block has no zone'],
    ['10.0.0.1/8', 'bits are set behind the prefix: write 10.0.0.0/8'],
    ['2001:db8::1/32', 'bits are set behind the prefix: write 2001:db8::/32'],
    ['::ffff:0:0/95', 'bits are set behind the prefix: write ::fffe:0:0/95'],
  ])('%j is refused: %s', (text, problem) => {
    const parsed = parseCidr(text);
    expect(parsed.ok).toBe(false);
    expect(parsed.ok ? '' : `${parsed.problem}: ${parsed.fix}`).toContain(problem);
  });

  test('whatever is written canonically is read back the same', () => {
    fc.assert(
      fc.property(block, (one) => {
        const text = formatCidr(one);
        expect(formatCidr(cidr(text))).toBe(text);
      }),
    );
  });

  test('no text makes it throw', () => {
    fc.assert(fc.property(fc.string(), (text) => void parseCidr(text)));
    fc.assert(
      fc.property(fc.stringMatching(/^[0-9a-f.:/%]{0,24}$/), (text) => void parseCidr(text)),
    );
  });
});

describe('lists of allowed and denied blocks', () => {
  test('without any rule everybody is allowed', () => {
    expect(verdicts(list([], []), '192.0.2.1', '2001:db8::1')).toEqual([true, true]);
  });

  test('with denied blocks only, everybody else is allowed', () => {
    const access = list([], ['10.0.0.0/8', '2001:db8::/32']);
    expect(verdicts(access, '9.255.255.255', '10.0.0.0', '10.255.255.255', '11.0.0.0')).toEqual([
      true,
      false,
      false,
      true,
    ]);
    expect(verdicts(access, '2001:db7:ffff::', '2001:db8::', '2001:db9::')).toEqual([
      true,
      false,
      true,
    ]);
  });

  test('with allowed blocks, nobody else is, the other family included', () => {
    const access = list(['10.0.0.0/8'], []);
    expect(verdicts(access, '10.1.2.3', '11.0.0.0', '::1')).toEqual([true, false, false]);
  });

  test('the longest prefix decides, however deep the blocks are nested', () => {
    const access = list(['0.0.0.0/0', '10.1.0.0/16', '10.1.1.1'], ['10.0.0.0/8', '10.1.1.0/24']);
    expect(
      verdicts(access, '9.9.9.9', '10.9.9.9', '10.1.9.9', '10.1.1.9', '10.1.1.1', '10.1.1.2'),
    ).toEqual([true, false, true, false, true, false]);
  });

  test('a block in both lists is denied', () => {
    const access = list(['10.0.0.0/8', '::/0'], ['10.0.0.0/8', '::/0']);
    expect(verdicts(access, '10.0.0.1', '::1')).toEqual([false, false]);
  });

  test('a list knows the blocks it was made from, in which list they stood', () => {
    const access = list(['10.0.0.0/8', '::/0'], ['10.1.0.0/16']);
    const isOf = (allow: string[], deny: string[]): boolean =>
      access.isOf(allow.map(cidr), deny.map(cidr));
    expect(isOf(['10.0.0.0/8', '::/0'], ['10.1.0.0/16'])).toBe(true);
    expect(isOf(['10.0.0.0/8'], ['10.1.0.0/16'])).toBe(false);
    expect(isOf(['10.0.0.0/8', '::/0'], ['10.1.0.0/17'])).toBe(false);
    expect(isOf(['10.0.0.0/8', '::/0'], ['10.2.0.0/16'])).toBe(false);
    expect(isOf(['10.1.0.0/16'], ['10.0.0.0/8', '::/0'])).toBe(false);
  });

  test('blocks that end together, touch, or end with the address space', () => {
    const access = list(
      ['255.0.0.0/8', '255.255.255.255'],
      ['255.255.0.0/16', '254.0.0.0/8', '255.255.255.254'],
    );
    expect(
      verdicts(
        access,
        '254.255.255.255',
        '255.0.0.0',
        '255.254.255.255',
        '255.255.0.0',
        '255.255.255.254',
        '255.255.255.255',
      ),
    ).toEqual([false, true, true, false, false, true]);
    const wide = list(['::/1'], ['8000::/1', '7fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff']);
    expect(verdicts(wide, '7fff:ffff:ffff:ffff:ffff:ffff:ffff:fffe', '8000::', 'ffff::')).toEqual([
      true,
      false,
      false,
    ]);
  });

  test('::/0 holds no IPv4 client, and a mapped block holds them as IPv4', () => {
    const access = list(['::ffff:10.0.0.0/104'], ['::/0']);
    expect(verdicts(access, '10.0.0.1', '11.0.0.1', '::1')).toEqual([true, false, false]);
  });

  test('the rule that decides can be told', () => {
    const access = list(['10.0.0.0/8'], ['10.1.0.0/16']);
    expect(access.ruleFor(address('10.1.2.3:1'))).toEqual({
      cidr: cidr('10.1.0.0/16'),
      verdict: 'deny',
    });
    expect(access.ruleFor(address('11.0.0.0:1'))).toBeUndefined();
  });

  test('10,000 blocks are listed, and one more is a mistake of ours', () => {
    const blocks = Array.from({ length: ACCESS_RULES_MAX }, (_, n): Cidr => ({
      base: ipv6([0x20010db8, n, 0, 0], 0),
      bits: 64,
    }));
    const access = new AccessList(blocks, []);
    for (let n = 0; n < ACCESS_RULES_MAX; n += 97) {
      expect(access.allows(ipv6([0x20010db8, n, -1, -1], 1))).toBe(true);
    }
    expect(access.allows(ipv6([0x20010db8, ACCESS_RULES_MAX, 0, 0], 1))).toBe(false);
    expect(() => new AccessList(blocks, [cidr('::1')])).toThrow('bound on access rules');
  });
});

test('any lists agree with a scan for the longest prefix', () => {
  fc.assert(
    fc.property(
      fc.array(block, { maxLength: 12 }),
      fc.array(block, { maxLength: 12 }),
      fc.array(client, { minLength: 1, maxLength: 8 }),
      (allow, deny, clients) => {
        const access = new AccessList(allow, deny);
        const edges = [...allow, ...deny].flatMap(edgesOf);
        for (const one of [...clients, ...edges]) {
          expect(access.allows(one), JSON.stringify(one)).toBe(naive(allow, deny, one));
        }
      },
    ),
    { numRuns: 1_000 },
  );
});

/** Words of which many agree in their first bits, so that blocks nest and touch. */
const word = fc.oneof(
  fc.constantFrom(0, -1, 1, -2, 1 << 31, 0x7fffffff),
  fc.nat(7).map((top) => top << 29),
  fc.integer(),
);
const client: fc.Arbitrary<Address> = fc.oneof(
  word.map((a) => ipv4(a, 1)),
  fc.tuple(word, word, word, word).map((words) => ipv6(words, 1)),
);
const block: fc.Arbitrary<Cidr> = fc
  .tuple(client, fc.oneof(fc.nat(8), fc.nat(128)))
  .map(([one, bits]) => blockAround(one, one.family === 4 ? bits % 33 : bits))
  .filter(({ base }) => base.family === 4 || base.a !== 0 || base.b !== 0 || base.c !== 0xffff);

function blockAround(one: Address, bits: number): Cidr {
  const text = bitsOf(one).slice(0, bits);
  return { base: addressOf(one.family, text.padEnd(bitsOf(one).length, '0')), bits };
}

/** The first and the last address of a block. */
function edgesOf({ base, bits }: Cidr): Address[] {
  const text = bitsOf(base).slice(0, bits);
  return ['0', '1'].map((fill) => addressOf(base.family, text.padEnd(bitsOf(base).length, fill)));
}

function naive(allow: readonly Cidr[], deny: readonly Cidr[], one: Address): boolean {
  const longest = (blocks: readonly Cidr[]): number =>
    Math.max(
      -1,
      ...blocks
        .filter(({ base }) => base.family === one.family)
        .filter(({ base, bits }) => bitsOf(base).slice(0, bits) === bitsOf(one).slice(0, bits))
        .map(({ bits }) => bits),
    );
  const [allowed, denied] = [longest(allow), longest(deny)];
  if (allowed < 0 && denied < 0) return allow.length === 0;
  return allowed > denied;
}

function bitsOf({ family, a, b, c, d }: Address): string {
  const words = family === 4 ? [a] : [a, b, c, d];
  return words.map((one) => (one >>> 0).toString(2).padStart(32, '0')).join('');
}

function addressOf(family: 4 | 6, bits: string): Address {
  const [a = 0, b = 0, c = 0, d = 0] = (bits.match(/.{32}/g) ?? []).map((one) =>
    Number.parseInt(one, 2),
  );
  return family === 4 ? ipv4(a, 1) : ipv6([a, b, c, d], 1);
}

function cidr(text: string): Cidr {
  const parsed = parseCidr(text);
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.cidr;
}

function list(allow: readonly string[], deny: readonly string[]): AccessList {
  return new AccessList(allow.map(cidr), deny.map(cidr));
}

function verdicts(access: AccessList, ...clients: readonly string[]): boolean[] {
  return clients.map((text) =>
    access.allows(address(text.includes(':') ? `[${text}]:1000` : `${text}:1000`)),
  );
}
