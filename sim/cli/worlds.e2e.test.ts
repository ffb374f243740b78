import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import {
  plantedBuild,
  simulate,
  type Planted,
  type SimulatorOptions,
} from '../../test/simulator.ts';
import { readReport } from './read-report.ts';
import { toReport, type Report } from './report.ts';

const folder = mkdtempSync(join(tmpdir(), 'sim-worlds-'));
afterAll(() => rmSync(folder, { recursive: true }));

const BURST = ['--scenario', 'dns-burst', '--seeds', '6'];

test('jobs, shards and merging change nothing of a sweep of worlds but its timing', async () => {
  const whole = await reportOf(BURST, 'whole');
  expect(whole.report).toMatchObject({ verdict: 'green', seeds: 6, plan: { all: false } });
  const [row] = whole.report.scenarios;
  expect(row).toMatchObject({ kind: 'world', actions: { Begin: 24 } });
  expect(row?.simulated).toBeGreaterThan(6_000_000);
  expect(row?.closes['closedResponses']).toBeGreaterThan(100);
  expect(await reportOf([...BURST, '--jobs', '1'], 'one-job')).toEqual(whole);
  for (const shard of [2, 1]) await reportOf([...BURST, '--shard', `${shard}/2`], `part-${shard}`);
  const files = [2, 1].map((shard) => fileOf(`part-${shard}`));
  await simulate(['merge', ...files, '--json', fileOf('merged')]);
  expect(reportIn('merged')).toEqual(whole.report);
});

test('the sweep of a world sees its own properties, and misses none of others', async () => {
  const { report } = await reportOf(BURST, 'properties');
  const names = report.properties.map(({ name }) => name);
  expect(names).toContain('every datagram ends exactly once');
  expect(names).not.toContain('no call throws');
  expect(report.judgesMissed).toBe(false);
});

test('a seed of a world is told action by action, and has the digest of its quiet run', async () => {
  const environment = { SOZU_UDP_SIM_SEED: '0x2' };
  const world = await simulate(['--scenario', 'dns-burst'], { environment });
  const quiet = await simulate(['--scenario', 'dns-burst', '--first-seed', '2', '--seeds', '1']);
  expect(world.stdout).toMatch(/^ {2}at 0\.000000 s process 1 of proxy 0 starts$/m);
  expect(world.stdout).toMatch(/^action 1 at 0\.000000 s: Begin phase calm$/m);
  expect(world.stdout).toMatch(/^action \d+ at \d+\.\d{6} s: Send client \d+, /m);
  expect(world.stdout).toMatch(
    /^ {2}at .* process 1: OpenUpstream socket \d+, backend 10\.0\.1\./m,
  );
  expect(world.stdout).toMatch(/^ {2}at .* process 1 has ended$/m);
  expect(digestOf(world.stdout)).toBe(digestOf(quiet.stdout));
});

test('seeds of worlds repeat themselves, in a fresh process too', async () => {
  const { code, stdout } = await simulate([
    ...BURST.slice(0, 2),
    '--seeds',
    '2',
    '--check-determinism',
  ]);
  expect(stdout).toContain('2 of 2 seeds repeated, 2 of them in a fresh process too, all the same');
  expect(code).toBe(0);
});

const CHANCE: Planted = {
  file: 'core/balancing/round-robin.js',
  search: 'this.cursor = (this.cursor + 1) % count;',
  replace: 'this.cursor = Math.floor(Math.random() * count);',
};

test('chance that is no seed’s is caught, with the first action that differs', async () => {
  await withPlanted(CHANCE, async (dist) => {
    // Some of them take turns among several backends.
    const args = ['--scenario', 'dns-burst', '--seeds', '8'];
    const { code, stdout } = await simulate([...args, '--check-determinism'], { dist });
    expect(code).toBe(1);
    expect(stdout).toMatch(/action \d+ is the first to differ: [0-9a-f]{16} at first/);
    expect(stdout).toMatch(
      /replay: SOZU_UDP_SIM_SEED=0x[0-7] npm run sim -- --scenario dns-burst --check-d/,
    );
  });
});

const TWICE: Planted = {
  file: 'core/data-plane.js',
  search: 'listener.counters.clientReceived += 1;',
  replace: 'listener.counters.clientReceived += 2;',
};

test('a violation tells scenario, seed, action, the last ten actions and the command', async () => {
  await withPlanted(TWICE, async (dist) => {
    const { code, stdout } = await simulate(BURST, { dist });
    expect(code).toBe(1);
    const [first = ''] = stdout.split('\n\n');
    expect(first).toMatch(/^FAILED: /);
    expect(first).toMatch(/^ {2}scenario dns-burst, seed 0x0, action \d+$/m);
    expect(first.match(/^ {4}action \d+ at \d+\.\d{6} s: [A-Z]/gm)).toHaveLength(10);
    expect(first).toMatch(/ {2}replay: SOZU_UDP_SIM_SEED=0x0 npm run sim -- --scenario dns-burst$/);
    const environment = { SOZU_UDP_SIM_SEED: '0x0' };
    const again = await simulate(['--scenario', 'dns-burst'], { dist, environment });
    expect(again.stdout).toContain(first);
  });
});

test('--steps is nothing that a world has', async () => {
  const { code, stderr } = await simulate([...BURST, '--steps', '5']);
  expect(code).toBe(2);
  expect(stderr).toContain('error: --steps: a seed of dns-burst lasts as long as its world');
});

async function withPlanted(change: Planted, body: (dist: string) => Promise<void>): Promise<void> {
  const build = plantedBuild([change]);
  try {
    await body(build.dist);
  } finally {
    build.dispose();
  }
}

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

function digestOf(stdout: string): string | undefined {
  return /^digest ([0-9a-f]{16})$/m.exec(stdout)?.[1];
}
