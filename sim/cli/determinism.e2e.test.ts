import { expect, test } from 'vitest';
import { plantedBuild, simulate, type Planted } from '../../test/simulator.ts';

/** What is planted ends a run at the step where the shadow model sees it too: the repetition must part there as well. */
const RANDOM = 'core/balancing/random.js';
const TICKET = 'let ticket = this.random.below(total);';

function ticket(planted: string): Planted {
  return {
    file: RANDOM,
    search: TICKET,
    replace: `let ticket = (this.random.below(total) + (${planted})) % total;`,
  };
}

/** Every deadline that is armed moves, so that no two draws agree by luck. */
function deadline(planted: string): Planted {
  return {
    file: 'core/live-flows.js',
    search: "{ kind: 'ArmTimer', at: next }",
    replace: `{ kind: 'ArmTimer', at: next + Math.trunc(${planted}) }`,
  };
}

/** Two seeds that balance by RANDOM. */
const SEEDS = ['--first-seed', '28', '--seeds', '2', '--steps', '300'];
const ARGS = ['--scenario', 'default', ...SEEDS, '--check-determinism'];

test.each<[string, string, readonly Planted[]]>([
  ['a clock that is read', 'after another seed', [deadline('1_000_000 * performance.now()')]],
  ['a draw from Math.random', 'after another seed', [deadline('1_000_000_000 * Math.random()')]],
  [
    'a receive buffer that is kept',
    'in another guise',
    [
      ticket('globalThis.kept?.at(-1) ?? 0'),
      {
        file: 'core/manager.js',
        search:
          'this.onClientDatagram(input.src, input.local, input.payload, input.backends, now);',
        replace: `this.onClientDatagram(input.src, input.local, input.payload, input.backends, now);
                globalThis.kept = input.payload;`,
      },
      {
        file: 'core/manager.js',
        search: 'constructor(options) {',
        replace: 'constructor(options) { globalThis.kept = undefined;',
      },
    ],
  ],
  [
    'object keys that look like integers',
    'in another guise',
    [
      {
        file: RANDOM,
        search: TICKET,
        replace: `${TICKET}
        const drawn = candidates.find((candidate) => (ticket -= candidate.weight) < 0);
        (this.seen ??= {})[drawn.id] = true;
        const first = Object.keys(this.seen)[0];
        return candidates.find(({ id }) => id === first) ?? drawn;`,
      },
    ],
  ],
  [
    'state that seeds share',
    'after another seed',
    [ticket('(globalThis.turns = (globalThis.turns ?? 0) + 50)')],
  ],
  [
    'a time zone that is asked for',
    'in a fresh process',
    [ticket('new Date(0).getTimezoneOffset() === 0 ? 0 : total >> 1')],
  ],
])('%s is caught %s, with the first step that differs', async (_, how, changes) => {
  const build = plantedBuild(changes);
  try {
    const { code, stdout } = await simulate(ARGS, { dist: build.dist, environment: { TZ: 'UTC' } });
    expect(stdout).toContain('FAILED: a repeated seed does the same');
    expect(code).toBe(1);
    const told =
      /step (\d+)\n  step (\d+) is the first to differ: ([0-9a-f]{16}) at first, ([0-9a-f]{16}) (.*)/.exec(
        stdout,
      );
    const [, where, step, one, other, found] = told ?? [];
    expect(step).toBe(where);
    expect(one).not.toBe(other);
    expect(found?.startsWith(how)).toBe(true);
    expect(stdout).toMatch(/npm run sim -- --scenario default --check-determinism\n/);
  } finally {
    build.dispose();
  }
});

test('without anything planted every repetition is the same', async () => {
  const { code, stdout } = await simulate([
    '--seeds',
    '8',
    '--steps',
    '300',
    '--check-determinism',
  ]);
  expect(stdout).toContain(
    'determinism: 10 of 10 seeds repeated, 5 of them in a fresh process too, all the same',
  );
  expect(code).toBe(0);
});

test('a share of the seeds can be asked for, and the digest is that of the sweep without it', async () => {
  const sweep = ['--seeds', '40', '--steps', '100'];
  const [checked, plain] = await Promise.all([
    simulate([...sweep, '--check-determinism', '10%']),
    simulate(sweep),
  ]);
  expect(checked.stdout).toContain('determinism: 5 of 50 seeds repeated');
  expect(digestOf(checked.stdout)).toBe(digestOf(plain.stdout));
});

function digestOf(stdout: string): string | undefined {
  return /^digest ([0-9a-f]{16})$/m.exec(stdout)?.[1];
}
