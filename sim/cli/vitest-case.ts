/** A replay as a test that stands by itself: no file, no seed, no chance. */
import type { Replay } from '../core-harness/replay.ts';

/** The source of a test file that fails while the bug is there. Fit to be pasted anywhere in this package. */
export function vitestCase({ name, property, initial, actions }: Replay): string {
  return `import { Observer, runActions, type Action, type InitialState } from 'sozu-udp/sim';
import { expect, test } from 'vitest';

test(${JSON.stringify(`${name}: ${property}`)}, () => {
  const initial: InitialState = ${JSON.stringify(initial)};
  const actions: readonly Action[] = [
${actions.map((action) => `    ${JSON.stringify(action)},\n`).join('')}  ];
  const { violation } = runActions(initial, actions, { observer: new Observer() });
  expect(violation).toBeUndefined();
});
`;
}
