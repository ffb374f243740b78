/**
 * The control plane's events as log lines: limited for each backend and each cluster, so that one that flaps is one line of
 * each kind in ten seconds.
 */
import {
  assertNever,
  formatAddress,
  type ControlEvent,
  type HealthEvidence,
} from '../core/index.ts';
import type { Log, LogLimiter } from './log.ts';

export function logEvent(log: Log, limiter: LogLimiter, event: ControlEvent): void {
  const { cluster } = event;
  switch (event.kind) {
    case 'HealthChanged':
      return logHealth(log, limiter, event);
    case 'BackendEjected':
    case 'BackendReturned':
      return logEjection(log, limiter, event);
    case 'NoAvailableBackends': {
      const suppressed = limiter.admit(`all down ${cluster}`);
      if (suppressed === undefined) return undefined;
      const then = event.failOpen ? 'every one is tried' : 'new flows are refused';
      return log.error(
        { cluster, total: event.total, suppressed },
        `no backend is available: ${then}`,
      );
    }
    case 'ClusterRecovered': {
      const suppressed = limiter.admit(`recovered ${cluster}`);
      if (suppressed === undefined) return undefined;
      return log.info({ cluster, available: event.available, suppressed }, 'cluster recovered');
    }
    case 'BackendDraining':
    case 'BackendDrained':
      return logDrain(log, limiter, event);
    case 'Availability':
      return undefined;
    default:
      return assertNever(event);
  }
}

function logHealth(
  log: Log,
  limiter: LogLimiter,
  { cluster, address, to, evidence }: Extract<ControlEvent, { kind: 'HealthChanged' }>,
): void {
  const backend = formatAddress(address);
  const suppressed = limiter.admit(`${to} ${backend} ${cluster}`);
  if (suppressed === undefined) return;
  const line = { cluster, backend, ...evidenceOf(evidence), suppressed };
  if (to === 'down') log.warn(line, 'backend down');
  else log.info(line, 'backend up');
}

function logEjection(
  log: Log,
  limiter: LogLimiter,
  event: Extract<ControlEvent, { kind: 'BackendEjected' | 'BackendReturned' }>,
): void {
  const { cluster, kind } = event;
  const backend = formatAddress(event.address);
  const suppressed = limiter.admit(`${kind} ${backend} ${cluster}`);
  if (suppressed === undefined) return;
  if (event.kind === 'BackendEjected') {
    const { kind: evidence, ...figures } = event.evidence;
    log.warn({ cluster, backend, evidence, ...figures, suppressed }, 'backend ejected');
  } else {
    log.info({ cluster, backend, reason: event.reason, suppressed }, 'backend returned');
  }
}

function logDrain(
  log: Log,
  limiter: LogLimiter,
  event: Extract<ControlEvent, { kind: 'BackendDraining' | 'BackendDrained' }>,
): void {
  const { cluster, kind, flowsLeft } = event;
  const backend = formatAddress(event.address);
  const suppressed = limiter.admit(`${kind} ${backend} ${cluster}`);
  if (suppressed === undefined) return;
  const line = { cluster, backend, flowsLeft, suppressed };
  if (event.kind === 'BackendDraining') log.info(line, 'backend draining');
  else log.info({ ...line, reason: event.reason }, 'backend drained');
}

function evidenceOf(evidence: HealthEvidence): Record<string, string | number> {
  if (evidence.kind === 'unwatched') return { evidence: 'no longer probed' };
  const { mode, outcome, streak } = evidence;
  return { evidence: `${mode} probe: ${outcome}`, streak };
}
