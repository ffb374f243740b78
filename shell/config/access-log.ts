/** What the table `[access_log]` means: a target for the shell, the rest for the core. */
import type { AccessLogSettings } from '../../core/config.ts';
import { reportIssues } from './issues.ts';
import type { Report } from './problem.ts';
import { ACCESS_LOG, pathOf } from './schema-access-log.ts';

export interface AccessLogRead {
  /** `stdout`, `stderr`, or the absolute path of a file. */
  readonly target: string;
  readonly settings: AccessLogSettings;
}

/** Undefined when there is no such table, or a broken one. */
export function readAccessLog(raw: unknown, report: Report): AccessLogRead | undefined {
  if (raw === undefined) return undefined;
  const result = ACCESS_LOG.safeParse(raw, { reportInput: true });
  if (!result.success) {
    reportIssues(report, ['access_log'], result.error.issues);
    return undefined;
  }
  const { target, one_in: oneIn, lines_per_second: linesPerSecond } = result.data;
  return { target: pathOf(target) ?? target, settings: { oneIn, linesPerSecond } };
}
