import { defineConfig } from 'vitest/config';

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
      {
        test: {
          name: 'e2e',
          include: ['**/*.e2e.test.ts'],
          exclude: ['node_modules', 'dist'],
          testTimeout: 120_000,
          hookTimeout: 60_000,
          fileParallelism: false,
          // After the unit tests, not beside them: figures shown here come from a machine at rest.
          sequence: { groupOrder: 1 },
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
