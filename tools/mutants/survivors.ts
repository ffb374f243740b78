/** Reads survivors.md, which says of every survivor why it may live: the same text for people and for the score. */

export type Reason = 'equivalent' | 'out of reach' | 'gap';

const LINE = /^- `(?<id>[^`]+)` \((?<reason>equivalent|out of reach|gap)\): \S/;

/** The reason given for each mutant, by its id. */
export function readSurvivors(text: string): ReadonlyMap<string, Reason> {
  const reasons = new Map<string, Reason>();
  for (const line of text.split('\n')) {
    const { id, reason } = LINE.exec(line)?.groups ?? {};
    if (id !== undefined && isReason(reason)) reasons.set(id, reason);
  }
  return reasons;
}

function isReason(text: string | undefined): text is Reason {
  return text === 'equivalent' || text === 'out of reach' || text === 'gap';
}
