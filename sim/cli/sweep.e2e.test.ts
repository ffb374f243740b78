import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { plantedBuild, simulate, type SimulatorOptions } from '../../test/simulator.ts';
import { SCENARIOS, WORLD_SCENARIOS } from '../../scenarios/index.ts';
import { readReport } from './read-report.ts';
import { toReport, type Report } from './report.ts';

const folder = mkdtempSync(join(tmpdir(), 'sim-sweep-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Some chunks for each of two workers. */
const SMALL = ['--seeds', '24', '--steps', '600'];

test('jobs, shards and a second process change nothing of a report but its timing', async () => {
  const whole = await reportOf(SMALL, 'whole');
  expect(whole.report.verdict).toBe('green');
  expect(await reportOf([...SMALL, '--jobs', '1'], 'one-job')).toEqual(whole);
  expect(await reportOf([...SMALL, '--jobs', '5'], 'five-jobs')).toEqual(whole);
  const shards = await Promise.all(
    [1, 2, 3, 4].map((index) => reportOf([...SMALL, '--shard', `${index}/4`], `shard-${index}`)),
  );
  expect(shards.reduce((sum, { report }) => sum + report.seeds, 0)).toBe(30);
  const files = [3, 1, 4, 2].map((index) => fileOf(`shard-${index}`));
  const merged = await simulate(['merge', ...files, '--json', fileOf('merged')]);
  expect(merged.code).toBe(0);
  expect(merged.stdout).toContain(`digest ${whole.report.digest}\n`);
  expect(reportIn('merged')).toEqual(whole.report);
});

test('a seed told step by step has the digest of its quiet run', async () => {
  const told = await simulate(['--seed', '0x5eed', '--steps', '200']);
  const quietly = '--first-seed 24301 --seeds 1 --steps 200 --scenario default';
  const quiet = await simulate(quietly.split(' '));
  expect(told.stdout).toMatch(/^step 1: /);
  expect(told.stdout).toMatch(/^step 200: /m);
  expect(told.stdout).toMatch(/^ {2}ClientDatagram at \d+\.\d{6} s$/m);
  expect(told.stdout).toMatch(/^ {4}SendToBackend of flow \d+ to 127\.0\.0\.1:530\d, /m);
  expect(told.stdout).toMatch(/^ {2}table: \d+ of \d+ flows, timer armed at /m);
  expect(digestOf(told.stdout)).toBe(digestOf(quiet.stdout));
  const environment = { SOZU_UDP_SIM_SEED: '0x5eed', SOZU_UDP_SIM_STEPS: '200' };
  const again = await simulate([], { environment });
  expect(linesOf(again.stdout)).toEqual(linesOf(told.stdout));
});

test('the canary fails: property, seed, step, last actions, and a command that fails the same', async () => {
  const { code, stdout } = await simulate(['--scenario', 'canary', '--seeds', '3']);
  expect(code).toBe(1);
  const [first = ''] = stdout.split('\n\n');
  expect(linesOf(first).slice(0, 4)).toEqual([
    'FAILED: the canary sings',
    expect.stringMatching(/^ {2}scenario canary, seed 0x0, step \d+$/),
    '  was reached',
    '  last actions:',
  ]);
  expect(first.match(/^ {4}step \d+: [A-Z]/gm)).toHaveLength(10);
  expect(first).toMatch(/^ {4}step \d+: CloseAll\n {2}replay: /m);
  const [, seed = '', steps = '', scenario = ''] =
    /replay: SOZU_UDP_SIM_SEED=(\S+) SOZU_UDP_SIM_STEPS=(\S+) npm run sim -- --scenario (\S+)$/.exec(
      first,
    ) ?? [];
  const environment = { SOZU_UDP_SIM_SEED: seed, SOZU_UDP_SIM_STEPS: steps };
  const replayed = await simulate(['--scenario', scenario], { environment });
  expect(replayed.code).toBe(1);
  expect(replayed.stdout).toContain(first);
});

/** In the first hundred steps the canary fails under some seeds only. */
const SPARSE = ['--scenario', 'canary', '--first-seed', '1', '--seeds', '64', '--steps', '100'];

test('--bail reports the lowest failing seed and nothing behind it, whatever the jobs', async () => {
  const { failures } = (await reportOf(SPARSE, 'sparse')).report;
  expect(failures.length).toBeGreaterThan(1);
  const bailed = await reportOf([...SPARSE, '--bail', '--jobs', '1'], 'bail-1');
  expect(bailed.code).toBe(1);
  expect(bailed.report.failures).toEqual(failures.slice(0, 1));
  expect(bailed.report.ending).toBe('bail');
  expect(bailed.report.seeds).toBe(Number(failures[0]?.seed));
  expect(await reportOf([...SPARSE, '--bail', '--jobs', '4'], 'bail-4')).toEqual(bailed);
});

test('an interrupt keeps what was found, and ends with 130', async () => {
  const endless = ['--scenario', 'canary', '--seeds', '100000000', '--verbose'];
  let sent = false;
  const { code, report } = await reportOf(endless, 'interrupted', {
    onOutput: (child) => {
      if (!sent) child.kill('SIGINT');
      sent = true;
    },
  });
  expect(code).toBe(130);
  expect(report.verdict).toBe('interrupted');
  expect(report.failures.length).toBeGreaterThan(0);
  expect(report.seeds).toBeGreaterThan(0);
});

const RUN_SEED = 'export function runSeed(scenario, seed, steps, options) {';

test('a worker that dies is a failure of the seed it was at, and its other seeds are run', async () => {
  await withPlanted(RUN_SEED, 'if (seed.low === 5) process.exit(7);', async (dist) => {
    const { code, report } = await reportOf(SMALL, 'died', { dist });
    expect(code).toBe(1);
    expect(report.seeds).toBe(30);
    expect(report.failures.map(({ scenario, seed, detail }) => [scenario, seed, detail])).toEqual([
      ['default', '0x5', 'exit code 7'],
      ['swarm', '0x5', 'exit code 7'],
    ]);
  });
});

test('an exception of the simulator itself is a failure with its seed and step', async () => {
  await withPlanted(
    RUN_SEED,
    "if (seed.low === 5) { options.observer.step = 12; throw new Error('planted'); }",
    async (dist) => {
      const { code, report } = await reportOf([...SMALL, '--scenario', 'default'], 'threw', {
        dist,
      });
      expect(code).toBe(1);
      expect(report.failures).toEqual([
        expect.objectContaining({
          property: 'the simulator itself does not throw',
          seed: '0x5',
          step: 12,
          detail: expect.stringMatching(/^Error: planted\n/),
        }),
      ]);
    },
  );
});

test('workers that cannot start end the sweep instead of being started for ever', async () => {
  const build = plantedBuild([
    {
      file: 'sim/cli/worker.js',
      search: 'const { position } = workerData;',
      replace: "throw new Error('planted');",
    },
  ]);
  try {
    const { code, stderr } = await simulate(SMALL, { dist: build.dist });
    expect(code).toBe(70);
    expect(stderr).toContain('a worker did not start: exit code 1 planted');
  } finally {
    build.dispose();
  }
});

test.each([
  [['--seeds', '1e3'], 'error: --seeds: not a number: "1e3"'],
  [['--seed', 'deadbeef'], 'error: --seed: not a seed: "deadbeef"'],
  [['--shard', '5/4'], 'error: --shard: not a shard: "5/4"'],
  [['--scenario', 'none'], 'error: --scenario: no scenario "none"; there are default, swarm'],
  [['--fast'], "error: unknown option '--fast'"],
  [['extra'], 'error: too many arguments'],
  [['--json', 'no/such/folder/report.json'], 'error: cannot write no/such/folder/report.json'],
  [['--json', 'core'], 'error: cannot write core: not the name of a file'],
  [['--junit', ''], 'error: cannot write : not the name of a file'],
  [['--json', '/dev/stdin/report.json'], 'error: cannot write /dev/stdin/report.json'],
  [['--json', `${'x'.repeat(300)}.json`], 'error: cannot write xxx'],
  [['--replay', 'a\u001b[2Jb'], 'error: cannot read a\\u001b[2Jb'],
  [['merge', 'none.json'], 'error: cannot read none.json'],
  [['merge', 'package.json'], 'error: package.json.schema: expected a natural number'],
])('%j is refused with exit code 2 and nothing on standard output', async (args, message) => {
  const { code, stdout, stderr } = await simulate(args);
  expect(stderr).toContain(message);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
});

test('a variable that is no seed is refused, an empty one is unset', async () => {
  const wrong = await simulate([], { environment: { SOZU_UDP_SIM_SEED: '12x' } });
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).toContain('error: SOZU_UDP_SIM_SEED: not a seed: "12x"');
  const unset = await simulate(['--steps', '10'], {
    environment: { SOZU_UDP_SIM_SEED: '', SOZU_UDP_SIM_SEEDS: '3', SOZU_UDP_SIM_STEPS: 'unused' },
  });
  expect(unset.code).toBe(0);
  expect(unset.stdout).toMatch(/^green: 4 seeds, 40 steps /);
});

test('--list names every scenario on a line of its own, --help shows examples', async () => {
  const { code, stdout } = await simulate(['--list']);
  expect(code).toBe(0);
  expect(SCENARIOS.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['default', 'swarm', 'canary']),
  );
  expect(linesOf(stdout).map((line) => line.split(' ')[0])).toEqual(
    [...SCENARIOS, ...WORLD_SCENARIOS].map(({ name }) => name),
  );
  expect((await simulate(['--help'])).stdout).toContain('Examples:\n  npm run sim ');
});

test('the JUnit report names properties and failing seeds', async () => {
  const { code } = await simulate([...SPARSE, '--bail', '--junit', fileOf('junit')]);
  expect(code).toBe(1);
  const xml = readFileSync(fileOf('junit'), 'utf8');
  expect(xml).toContain('<testcase classname="simulation.always" name="no call throws"/>');
  expect(xml).toMatch(/<testcase classname="simulation\.seed\.canary" name="0x2"><failure /);
});

async function reportOf(
  args: readonly string[],
  name: string,
  options?: SimulatorOptions,
): Promise<{ readonly code: number | null; readonly report: Report }> {
  const { code, stderr } = await simulate([...args, '--json', fileOf(name)], options);
  expect(stderr).not.toContain('error');
  return { code, report: reportIn(name) };
}

/** Without what may differ. */
function reportIn(name: string): Report {
  const { outcome } = readReport(readFileSync(fileOf(name), 'utf8'), name);
  return toReport(outcome, { seconds: 0, jobs: 0, node: '', busy: {} });
}

function fileOf(name: string): string {
  return join(folder, `${name}.json`);
}

async function withPlanted(
  head: string,
  planted: string,
  body: (dist: string) => Promise<void>,
): Promise<void> {
  const file = 'sim/core-harness/run.js';
  const build = plantedBuild([{ file, search: head, replace: `${head}\n${planted}` }]);
  try {
    await body(build.dist);
  } finally {
    build.dispose();
  }
}

function digestOf(stdout: string): string | undefined {
  return /^digest ([0-9a-f]{16})$/m.exec(stdout)?.[1];
}

/** Without the line that has the timing. */
function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line !== '' && !/^\w+: .* steps\/s$/.test(line));
}
