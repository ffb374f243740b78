/** The latest actions of a run, for whoever looks at a failure. */

const LAST_ACTIONS = 10;

/** As many as there is room for, of which the last ten are told. Described only then. */
export class Journal<Action> {
  private readonly room: number;
  private readonly describe: (action: Action, step: number) => string;
  private readonly entries: { readonly action: Action; readonly step: number }[] = [];
  private noted = 0;

  constructor(describe: (action: Action, step: number) => string, room: number = LAST_ACTIONS) {
    this.describe = describe;
    this.room = room;
  }

  note(action: Action, step: number): void {
    this.entries[this.noted % this.room] = { action, step };
    this.noted += 1;
  }

  /** Up to a step and with it. */
  last(step: number): string[] {
    const first = this.noted % this.entries.length;
    return [...this.entries.slice(first), ...this.entries.slice(0, first)]
      .filter((entry) => entry.step <= step)
      .slice(-LAST_ACTIONS)
      .map((entry) => this.describe(entry.action, entry.step));
  }
}
