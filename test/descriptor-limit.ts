/** Takes the free descriptors away from this process for a while, as a limit does. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Lowers this process's own limit while `run` is called; a shell that is already there raises it again. Needs `prlimit`. */
export async function withoutDescriptors(run: () => void): Promise<void> {
  const limit = (soft: string): string => `prlimit --pid ${process.pid} --nofile=${soft}:`;
  const script = `old=$(prlimit --pid ${process.pid} --nofile --noheadings --output=SOFT)
    ${limit('3')} && echo lowered && read answer; ${limit('$old')}`;
  const shell = spawn('sh', ['-c', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  const closed = once(shell, 'close');
  await once(shell.stdout, 'data');
  run();
  shell.stdin.end('\n');
  await closed;
}
