/** What is told of a reload stays small, whatever the file was. The other views: test/e2e/control.e2e.test.ts. */
import { expect, test } from 'vitest';
import { instant } from '../../core/index.ts';
import { readEnvironment } from '../config/environment.ts';
import { parseConfig } from '../config/parse.ts';
import { eventView, reloadView } from './views.ts';

test('of a file that is wrong all through the first errors are told, and how many more there are', () => {
  const listener = `[[listeners]]\nprotocol = "udp"\naddress = "${'x'.repeat(10_000)}"\nzz = 1\n`;
  const { problems } = parseConfig(Buffer.from(listener.repeat(300)), readEnvironment());
  const error = { kind: 'Invalid', message: 'the file has errors' } as const;
  const reload = {
    at: 0,
    cause: 'watch',
    file: 'x',
    outcome: { ok: false, error, problems },
  } as const;
  const view = reloadView(reload);
  const errors = problems.filter(({ severity }) => severity === 'error').length;
  expect(view['problems']).toHaveLength(20);
  expect(view['problems_untold']).toBe(errors - 20);
  // What may wait for a reader of events.
  expect(JSON.stringify(eventView({ kind: 'Reload', reload }, instant(0))).length).toBeLessThan(
    65_536,
  );
});

test('of a few errors each is told in full', () => {
  const { problems } = parseConfig(Buffer.from('a = '), readEnvironment());
  const error = { kind: 'Invalid', message: 'the file has errors' } as const;
  const outcome = { ok: false, error, problems } as const;
  const view = reloadView({ at: 0, cause: 'watch', file: 'x', outcome });
  expect(view['problems']).toEqual(problems.filter(({ severity }) => severity === 'error'));
  expect(view).not.toHaveProperty('problems_untold');
});
