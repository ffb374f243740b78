import { defineConfig } from 'vitest/config';

const END_TO_END = { testTimeout: 120_000, hookTimeout: 60_000 };

/**
 * They wait for seconds to pass and ask when something happened. Beside each other they do not notice; beside a sweep they
 * would.
 */
const BY_THE_CLOCK = ['test/e2e/{health,lost-backends,overload,passive}.e2e.test.ts'];

/** They ask how fast something is, or show it: one at a time, on a machine that does nothing else. */
const AT_REST = ['test/e2e/{dnsperf,flood,trace}.e2e.test.ts', 'tools/bench/*.e2e.test.ts'];

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['{core,sim,shell,tools,scenarios,replays,examples,test}/**/*.test.ts'],
          exclude: ['**/*.e2e.test.ts'],
          testTimeout: 30_000,
        },
      },
      // After the unit tests, not beside them: whoever waits for a process waits for a core, too.
      {
        test: {
          ...END_TO_END,
          name: 'e2e',
          include: ['**/*.e2e.test.ts'],
          exclude: ['node_modules', 'dist', ...BY_THE_CLOCK, ...AT_REST],
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...END_TO_END,
          name: 'e2e-by-the-clock',
          include: BY_THE_CLOCK,
          maxWorkers: 3,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          ...END_TO_END,
          name: 'e2e-at-rest',
          include: AT_REST,
          fileParallelism: false,
          sequence: { groupOrder: 3 },
        },
      },
    ],
    coverage: {
      provider: 'v8',
      include: ['core/**/*.ts', 'sim/**/*.ts', 'shell/**/*.ts'],
      exclude: ['**/*.test.ts', '**/*.laws.ts'],
      reportsDirectory: 'coverage',
      reportOnFailure: true,
    },
  },
});
