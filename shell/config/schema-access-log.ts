/** The table `[access_log]`: where a line for each flow that has ended goes, and for which flows. Off unless written. */
import * as z from 'zod';
import { LIMITS } from '../../core/config.ts';
import { ours, withReason, type DocumentedTable } from './key-notes.ts';

interface AccessLogTable {
  readonly target: string;
  readonly one_in: number;
  readonly lines_per_second: number;
}

const shape = {
  target: ours(
    z
      .string()
      .refine((text) => isStream(text) || pathOf(text) !== undefined, {
        error: 'expected "stdout", "stderr", or "file://" and an absolute path',
        params: { fix: 'write target = "file:///var/log/sozu-udp/access.log"' },
      })
      .default('stdout'),
    'Where the lines go: `stdout`, `stderr`, or `file://` and an absolute path. SIGUSR1 opens the file anew.',
  ),
  one_in: withReason(
    ours(count().default(1), 'Tell of one flow in so many, chosen by its number.', 'flows'),
    'Whoever writes this table wants lines, and `lines_per_second` bounds them.',
  ),
  lines_per_second: withReason(
    ours(
      count().default(1_000),
      'Write no more than this in a second. The next line says how many were left out (`suppressed`).',
    ),
    'At some 350 bytes a line, 30 GB a day at most.',
  ),
};

export const ACCESS_LOG: z.ZodType<AccessLogTable> = z.strictObject(shape);

export const ACCESS_LOG_KEYS: DocumentedTable = { header: '[access_log]', shape };

export function isStream(target: string): target is 'stdout' | 'stderr' {
  return target === 'stdout' || target === 'stderr';
}

/** The absolute path in `file://` and one; undefined where there is none. */
export function pathOf(target: string): string | undefined {
  return /^file:\/\/(\/[^\0]+)$/.exec(target)?.[1];
}

function count(): z.ZodInt {
  return z.int().min(1).max(LIMITS.accessLogCount);
}
