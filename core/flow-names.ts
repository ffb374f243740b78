/** Names of flows, as operators see them: `3.17` is the flow with number 17 of listener 3. */
import type { FlowAnswer } from './flow-commands.ts';

export function flowName(listener: number, serial: number): string {
  return `${listener}.${serial}`;
}

/** The listener and the number; undefined for what is no name. */
export function flowNumbers(name: string): readonly [number, number] | undefined {
  const [, listener, serial] = /^(\d{1,4})\.(\d{1,16})$/.exec(name) ?? [];
  return listener === undefined ? undefined : [Number(listener), Number(serial)];
}

/** The answer to whoever asks for a flow that is not there. */
export function noSuchFlow(name: string): FlowAnswer {
  return { kind: 'NotFound', message: `there is no live flow "${name}"` };
}
