/**
 * SIGTERM and SIGINT: the first asks for a soft stop, the second closes at once. SIGHUP: the file is to be read
 * again. SIGUSR1: log files are to be opened anew.
 */

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

/**
 * Calls `reload` for each SIGHUP, to the end of the process. Between signals that come together the kernel does not tell, so
 * one call may stand for several.
 */
export function onHangup(reload: () => void): void {
  process.on('SIGHUP', reload);
}

/** Calls `reopen` for each SIGUSR1, to the end of the process. */
export function onReopen(reopen: () => void): void {
  process.on('SIGUSR1', reopen);
}
