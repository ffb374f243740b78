/** A proxy with a control socket, and the program's own commands at it. */
import { dirname, join } from 'node:path';
import { Child, runToEnd } from './child.ts';
import { MAIN, startProxy, toml, type ProxyProcess, type Setup } from './proxy.ts';

/** What a command printed and how it ended. */
export interface Answer {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export class Controlled {
  readonly proxy: ProxyProcess;
  readonly socket: string;

  constructor(proxy: ProxyProcess) {
    this.proxy = proxy;
    this.socket = join(dirname(proxy.file), 'run', 'control.sock');
  }

  /** Runs `sozu-udp WORDS` to its end. */
  run(...words: readonly string[]): Promise<Answer> {
    return runToEnd(process.execPath, [MAIN, ...words, '--socket', this.socket]);
  }

  /** The same without an end of its own. */
  start(...words: readonly string[]): Child {
    return new Child(process.execPath, [MAIN, ...words, '--socket', this.socket]);
  }

  /** The answer of a command that must be done. */
  async ask(...words: readonly string[]): Promise<Record<string, unknown>> {
    const { code, stdout, stderr } = await this.run(...words, '--json');
    if (code !== 0) throw new Error(`${words.join(' ')} ended with ${code}: ${stdout}${stderr}`);
    const reply: unknown = JSON.parse(stdout);
    return typeof reply === 'object' && reply !== null ? { ...reply } : {};
  }

  /** What it says of itself. */
  async answer(...words: readonly string[]): Promise<Record<string, unknown>> {
    const { answer } = await this.ask(...words);
    return typeof answer === 'object' && answer !== null ? { ...answer } : {};
  }
}

/** Its socket is in a folder beside its file. */
export const SOCKET_KEY = { command_socket: './run/control.sock' } as const;

export async function startControlled(setup: Setup): Promise<Controlled> {
  const content = toml({ ...setup, top: { ...SOCKET_KEY, ...setup.top } });
  return new Controlled(await startProxy(content));
}
