/** How reloads went since the start: a fold over the proxy's events. */
import type { EventHub } from '../event-hub.ts';

export class ReloadFigures {
  ok = 0;
  refused = 0;
  lastWasOk = true;
  /** Milliseconds since 1970. The configuration of the start counts as taken, and as no reload. */
  lastOkAt: number = performance.timeOrigin + performance.now();
  readonly close: () => void;

  constructor(events: EventHub) {
    this.close = events.subscribe((event) => {
      if (event.kind !== 'Reload') return;
      const { at, outcome } = event.reload;
      this.lastWasOk = outcome.ok;
      if (!outcome.ok) this.refused += 1;
      else {
        this.ok += 1;
        this.lastOkAt = at;
      }
    });
  }
}
