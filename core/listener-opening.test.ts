import { describe, expect, test } from 'vitest';
import { addressOf, configOf, listenerConfig, PlaneBench } from '../test/plane-bench.ts';
import type { ListenerConfig } from './config.ts';
import { instant, seconds } from './time.ts';

const WAITS = { bindRetry: seconds(2) };

describe('a listener with bind_retry', () => {
  test.each(['EADDRNOTAVAIL', 'EADDRINUSE'])(
    'is tried again after %s until it opens; told are the first failure and the success',
    (errno) => {
      const bench = failing(errno, WAITS);
      expect(bench.ports.wake).toBe(seconds(2));
      expect(bench.plane.pollTimeout()?.reason).toBe('bind-retry');
      expect(bench.timer(1)).toEqual(['flush', 'wake 2']);
      expect(bench.timer(1)).toEqual([`listen 0 10.0.0.53:53 !${errno}`, 'flush', 'wake 4']);
      expect(kindsOf(bench)).toEqual(['ListenerFailed']);
      expect(bench.reports[0]).toMatchObject({ errno, retry: WAITS.bindRetry });
      bench.ports.listenerResult = undefined;
      expect(bench.timer(2)).toEqual(['listen 0 10.0.0.53:53', 'flush']);
      expect(bench.ports.wake).toBeUndefined();
      expect(kindsOf(bench)).toEqual(['ListenerFailed', 'ListenerOpened']);
      expect(bench.turn(() => bench.client('a'))).toContain('send u1 a');
    },
  );

  test('gives up at once where time is no cure, then and later', () => {
    const bench = failing('EADDRNOTAVAIL', WAITS);
    bench.ports.listenerResult = 'EACCES';
    bench.timer(2);
    expect(bench.ports.wake).toBeUndefined();
    expect(bench.reports.map((report) => 'retry' in report && report.retry)).toEqual([
      WAITS.bindRetry,
      undefined,
    ]);
    const other = failing('EACCES', WAITS);
    expect(other.ports.wake).toBeUndefined();
    expect(other.reports[0]).toMatchObject({ retry: undefined });
  });

  test.each([{ kind: 'Stop' } as const, { kind: 'Drain', deadline: instant(9_000_000) } as const])(
    'is tried no more once it is to stop: $kind',
    (directive) => {
      const bench = failing('EADDRINUSE', WAITS);
      bench.turn(() => bench.direct(directive));
      bench.ports.listenerResult = undefined;
      expect(bench.timer(5).filter((call) => call.startsWith('listen'))).toEqual([]);
    },
  );

  test('does not keep a flow of another listener from its deadline', () => {
    const bench = new PlaneBench(
      configOf(undefined, [
        listenerConfig({ frontTimeout: seconds(3) }),
        listenerConfig({ address: addressOf('10.0.0.54:53'), ...WAITS }),
      ]),
      'EADDRINUSE',
    );
    expect(bench.ports.wake).toBe(seconds(2));
  });
});

test('without bind_retry a failure is final', () => {
  const bench = failing('EADDRINUSE', {});
  expect(bench.ports.wake).toBeUndefined();
  expect(bench.reports).toMatchObject([{ kind: 'ListenerFailed', retry: undefined }]);
});

test('asks for the buffers of its configuration, one way and the other', () => {
  const bench = new PlaneBench(
    configOf(undefined, [listenerConfig({ receiveBuffer: 65_536, sendBuffer: 131_072 })]),
  );
  expect(bench.ports.calls).toContain('listen 0 10.0.0.53:53 65536/131072');
});

function failing(errno: string, more: Partial<ListenerConfig>): PlaneBench {
  return new PlaneBench(configOf(undefined, [listenerConfig(more)]), errno);
}

function kindsOf(bench: PlaneBench): string[] {
  return bench.reports.map(({ kind }) => kind);
}
