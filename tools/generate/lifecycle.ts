/**
 * Writes what doc/LIFECYCLE.md shows of the flow's transition table, from the table itself. The prose stays by hand in that
 * document: each part is replaced between a pair of markers, `<!-- transitions -->` and `<!-- end -->`.
 */
import { FLOW_TRANSITIONS } from '../../core/index.ts';

/** The document with the diagram and the table as the code has them now. Throws on a missing marker. */
export function lifecycleDocument(current: string): string {
  return [...generatedParts()].reduce((document, [name, body]) => {
    const part = new RegExp(`<!-- ${name} -->[^]*?<!-- end -->`);
    if (!part.test(document)) throw new Error(`missing marker: ${name}`);
    return document.replace(part, `<!-- ${name} -->\n\n${body}\n\n<!-- end -->`);
  }, current);
}

function generatedParts(): ReadonlyMap<string, string> {
  return new Map([
    ['diagram', diagram()],
    ['transitions', table()],
  ]);
}

interface Transition {
  readonly phase: string;
  readonly event: string;
  readonly next: string;
}

function transitions(): readonly Transition[] {
  return Object.entries(FLOW_TRANSITIONS).flatMap(([phase, events]) =>
    Object.entries(events).map(([event, next]) => ({ phase, event, next })),
  );
}

/** One arrow for each pair of phases, with its events. A flow is born in the first phase; one without events ends it. */
function diagram(): string {
  const phases = Object.entries(FLOW_TRANSITIONS);
  const arrows = phases.flatMap(([phase]) =>
    phases.flatMap(([next]) => {
      const events = transitions().filter((one) => one.phase === phase && one.next === next);
      return events.length === 0
        ? []
        : [`  ${phase} --> ${next}: ${events.map(({ event }) => event).join(', ')}`];
    }),
  );
  const last = phases.filter(([, events]) => Object.keys(events).length === 0);
  return [
    '```mermaid',
    'stateDiagram-v2',
    `  [*] --> ${phases[0]?.[0] ?? ''}`,
    ...arrows,
    ...last.map(([phase]) => `  ${phase} --> [*]`),
    '```',
  ].join('\n');
}

/** As prettier would write it, so that formatting the document changes nothing. */
function table(): string {
  const rows = transitions().map(({ phase, event, next }) => [phase, event, next]);
  const cells = [['phase', 'event', 'next phase'], ...rows];
  const widths = [0, 1, 2].map((column) =>
    Math.max(...cells.map((row) => (row[column] ?? '').length)),
  );
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  const rule = line(widths.map((width) => '-'.repeat(width)));
  return [line(cells[0] ?? []), rule, ...rows.map(line)].join('\n');
}
