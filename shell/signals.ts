/** SIGTERM and SIGINT: the first asks for a soft stop, the second closes at once. */

/** What a signal can ask of a proxy. */
export interface Stoppable {
  drain(): void;
  stop(): void;
}

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/**
 * Listens until the returned function is called; from then on a signal does nothing. It is still caught, because one that
 * comes while the process ends must not turn a clean stop into a kill. `told` hears each, before anything happens.
 */
export function stopOnSignals(
  proxy: Stoppable,
  told: (signal: string, hard: boolean) => void,
): () => void {
  let asked = false;
  let ended = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (ended) return;
    told(signal, asked);
    if (asked) proxy.stop();
    else proxy.drain();
    asked = true;
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return () => {
    ended = true;
  };
}
