import { expect, test } from 'vitest';
import { DNS_BURST } from '../../../scenarios/world/dns-burst.ts';
import { seedFromNumber } from '../../seed.ts';
import { judge, recordRun, repeated, without, type History } from '../history.ts';
import { TURN_SIZE } from './turn-size.ts';

const RUN = await recordRun(DNS_BURST, seedFromNumber(3));

test('a run is accepted', () => {
  expect(judge(TURN_SIZE, RUN)).toBeUndefined();
});

test('an output that is missing, or is there twice, is found', () => {
  for (const kind of ['SendToBackend', 'CloseUpstream', 'SendToClient'] as const) {
    const at = outputAt(RUN.history, kind);
    expect(judge(TURN_SIZE, { ...RUN, history: without(RUN.history, at) })?.detail).toContain(kind);
    expect(judge(TURN_SIZE, { ...RUN, history: repeated(RUN.history, at) })?.detail).toContain(
      kind,
    );
  }
});

/** The tenth of its kind. */
function outputAt(history: History, wanted: string): number {
  const places = history.flatMap(({ kind, fact }, at) =>
    kind === 'DataOutput' && fact.output.kind === wanted ? [at] : [],
  );
  const place = places[9];
  if (place === undefined) throw new Error(`there are not ten of ${wanted}`);
  return place;
}
