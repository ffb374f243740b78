import { beforeAll, expect, test } from 'vitest';
import { dgramHeader } from '../../../core/proxy-protocol.ts';
import { backendAddress, clientAddress } from '../builders.ts';
import { judge, replaced, type RecordedRun } from '../history.ts';
import { mutated, roughRuns, shuffled, withOutput } from '../rough-runs.ts';
import { PROXY_HEADERS } from './proxy-headers.ts';

let runs: RecordedRun[];

beforeAll(async () => {
  runs = await roughRuns(4);
}, 60_000);

test('accepts honest runs, and their independent events in another order', () => {
  for (const run of runs) {
    expect(judge(PROXY_HEADERS, run)).toBeUndefined();
    expect(judge(PROXY_HEADERS, shuffled(run))).toBeUndefined();
  }
});

test('refuses a header that is missing, and one that is not due', () => {
  const header = dgramHeader(clientAddress(0), backendAddress(0));
  const changes = [
    (present: boolean) => (present ? { header: undefined } : undefined),
    (present: boolean) => (present ? undefined : { header }),
  ];
  for (const change of changes) {
    const run = mutated(runs, (history) =>
      withOutput(history, 'SendToBackend', (output) => {
        const changed = change(output.header !== undefined);
        return changed === undefined ? undefined : { ...output, ...changed };
      }),
    );
    expect(judge(PROXY_HEADERS, run)?.property).toBe(
      'a PROXY header is there exactly when it is due',
    );
  }
});

test('refuses a header that names another client, or another backend, or is cut short', () => {
  for (const [at, length] of [
    [19, 28],
    [23, 28],
    [25, 28],
    [27, 28],
    [0, 20],
  ] as const) {
    const run = mutated(runs, (history) =>
      withOutput(history, 'SendToBackend', (output) => {
        if (output.header === undefined) return undefined;
        const header = output.header.slice(0, length);
        if (at > 0) header[at] = (header[at] ?? 0) ^ 1;
        return { ...output, header };
      }),
    );
    expect(judge(PROXY_HEADERS, run)?.property).toBe(
      'a PROXY header names the client and the backend',
    );
  }
});

test('refuses what a backend reads of a client that did not ask', () => {
  const run = mutated(runs, (history) => {
    for (const [index, told] of history.entries()) {
      if (told.kind !== 'BackendHeard' || told.fact.header.kind !== 'Proxied') continue;
      if (told.fact.message === undefined) continue;
      const header = { ...told.fact.header, source: clientAddress(9) };
      return replaced(history, index, { ...told, fact: { ...told.fact, header } });
    }
    return undefined;
  });
  expect(judge(PROXY_HEADERS, run)?.property).toBe(
    'a backend reads the true client from a PROXY header',
  );
});

test('refuses a client’s datagram under a LOCAL header', () => {
  const run = mutated(runs, (history) => {
    for (const [index, told] of history.entries()) {
      if (told.kind !== 'BackendHeard' || told.fact.message?.kind !== 'request') continue;
      const header = { kind: 'Local', payloadOffset: 16 } as const;
      return replaced(history, index, { ...told, fact: { ...told.fact, header } });
    }
    return undefined;
  });
  expect(judge(PROXY_HEADERS, run)?.property).toBe(
    'a backend reads the true client from a PROXY header',
  );
});
