import { beforeAll, expect, test } from 'vitest';
import { clientAddress } from '../builders.ts';
import { judge, replaced, type RecordedRun } from '../history.ts';
import { readMessage } from '../message.ts';
import { mutated, roughRuns, shuffled, withOutput } from '../rough-runs.ts';
import { REPLIES } from './replies.ts';

let runs: RecordedRun[];

beforeAll(async () => {
  runs = await roughRuns(3);
}, 60_000);

test('accepts honest runs, and their independent events in another order', () => {
  for (const run of runs) {
    expect(judge(REPLIES, run)).toBeUndefined();
    expect(judge(REPLIES, shuffled(run))).toBeUndefined();
  }
});

test('refuses a reply to somebody else', () => {
  const run = mutated(runs, (history) =>
    withOutput(history, 'SendToClient', (output) => {
      const { dst } = output;
      return { ...output, dst: { ...dst, port: dst.port + 1 } };
    }),
  );
  expect(judge(REPLIES, run)?.property).toBe('what comes back on a flow leaves for its client');
});

test('refuses a reply from another address than was asked', () => {
  const run = mutated(runs, (history) =>
    withOutput(history, 'SendToClient', (output) =>
      output.from === undefined ? undefined : { ...output, from: clientAddress(7) },
    ),
  );
  expect(judge(REPLIES, run)?.property).toBe('what comes back on a flow leaves for its client');
});

test('refuses a packet that leaves with the answer to another’s question', () => {
  const run = mutated(runs, (history) => {
    for (const [index, told] of history.entries()) {
      if (told.kind !== 'Packet' || told.fact.kind !== 'sent') continue;
      const { packet } = told.fact;
      if (readMessage(packet.datagram.payload)?.kind !== 'answer') continue;
      if (packet.datagram.src.port !== 53) continue;
      const { dst } = packet.datagram;
      const datagram = { ...packet.datagram, dst: { ...dst, port: dst.port + 1 } };
      return replaced(history, index, {
        ...told,
        fact: { ...told.fact, packet: { ...packet, datagram } },
      });
    }
    return undefined;
  });
  expect(judge(REPLIES, run)?.property).toBe('an answer leaves for the client who asked for it');
});
