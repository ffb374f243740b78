/** When traffic should be sent here, and what is said when not. */
import { expect, test } from 'vitest';
import { parseAddress, present, type Tier } from '../core/index.ts';
import { readinessOf, type Readiness } from './readiness.ts';

const address = present(parseAddress('10.0.0.1:53'), 'a literal');
const other = present(parseAddress('10.0.0.2:53'), 'a literal');

test('ready with a bound listener and a backend, a backup among them', () => {
  expect(asked({ c: 'primary' })).toEqual({ ready: true, reasons: [] });
  expect(asked({ c: 'backup' })).toEqual({ ready: true, reasons: [] });
});

test('ready where all are down and any is tried, and says so', () => {
  expect(asked({ c: 'fail-open' })).toEqual({
    ready: true,
    reasons: ['no backend of the listener 10.0.0.1:53 is available: every one is tried'],
  });
});

test('not ready without a way to serve', () => {
  const { ready, reasons } = asked({ c: 'none' });
  expect(ready).toBe(false);
  expect(reasons[0]).toBe('no listener leads to a backend that may be chosen');
  expect(asked({}).ready).toBe(false);
});

test('ready while one of two listeners can serve, and says which cannot', () => {
  const two = [
    { address, cluster: 'c' },
    { address: other, cluster: 'd' },
  ];
  expect(asked({ c: 'primary', d: 'none' }, { listeners: two })).toEqual({
    ready: true,
    reasons: ['the listener 10.0.0.2:53 has no backend for new flows'],
  });
  expect(
    asked({ c: 'primary' }, { listeners: [...two, { address, cluster: undefined }] }).ready,
  ).toBe(true);
});

test('not ready while it drains, while a listener is not bound, or with none', () => {
  expect(asked({ c: 'primary' }, { stopping: true })).toEqual({
    ready: false,
    reasons: ['draining'],
  });
  const failures = new Map([['10.0.0.2:53', 'EADDRINUSE']]);
  expect(asked({ c: 'primary' }, { failures })).toEqual({
    ready: false,
    reasons: ['the listener 10.0.0.2:53 is not open: EADDRINUSE'],
  });
  expect(asked({ c: 'primary' }, { listeners: [] })).toEqual({
    ready: false,
    reasons: ['no listener is open'],
  });
});

function asked(
  tiers: Readonly<Record<string, Tier>>,
  about: {
    readonly stopping?: boolean;
    readonly failures?: ReadonlyMap<string, string>;
    readonly listeners?: Parameters<typeof readinessOf>[0]['figures']['listeners'];
  } = {},
): Readiness {
  const { stopping = false, failures = new Map<string, string>() } = about;
  return readinessOf({
    condition: { generation: 1, stopping, failures },
    figures: {
      listeners: about.listeners ?? [{ address, cluster: 'c' }],
      clusters: Object.entries(tiers).map(([cluster, tier]) => ({ cluster, tier })),
    },
  });
}
