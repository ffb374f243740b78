/** SIGTERM and SIGINT: the first asks for a soft stop, the second closes at once. */

/** What a signal can ask of a proxy. */
export interface Stoppable {
  drain(): void;
  stop(): void;
}

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/** Listens until the returned function is called. `told` hears each signal, before anything happens. */
export function stopOnSignals(
  proxy: Stoppable,
  told: (signal: string, hard: boolean) => void,
): () => void {
  let asked = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    told(signal, asked);
    if (asked) proxy.stop();
    else proxy.drain();
    asked = true;
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return () => {
    for (const signal of SIGNALS) process.off(signal, onSignal);
  };
}
