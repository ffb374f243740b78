/** What moves datagrams: whether this machine has the batched system calls and the processors that a configuration wants. */
import type { Finding, Patient } from './finding.ts';

export function checkWorkers({ machine, settings }: Patient): Finding[] {
  if (settings === undefined || settings.io === 'dgram') return [];
  const { io, workers } = settings;
  const missing = machine.missingForBatches();
  if (missing !== undefined && io === 'mmsg') {
    return [
      {
        severity: 'error',
        check: 'workers',
        what: `io = "mmsg" cannot be had: ${missing}`,
        why: 'nothing starts',
        fix: 'mend what is missing, or write io = "auto"',
      },
    ];
  }
  if (missing !== undefined && (workers === 'auto' || workers === 1)) {
    return [
      {
        severity: 'notice',
        check: 'workers',
        what: `node:dgram moves the datagrams: ${missing}`,
        why: 'each costs two to three times as much processor time as with io = "mmsg"',
        fix: 'mend what is missing, or write io = "dgram"',
      },
    ];
  }
  if (workers === 'auto' || workers === 1) return [];
  if (missing !== undefined) {
    return [
      {
        severity: 'warning',
        check: 'workers',
        what: `one worker instead of ${workers}: ${missing}`,
        why: 'node:dgram moves the datagrams, in one thread',
        fix: 'write workers = 1   # or mend what is missing',
      },
    ];
  }
  const { processors } = machine;
  if (workers <= processors) return [];
  return [
    {
      severity: 'warning',
      check: 'workers',
      what: `${workers} workers want a processor each, and there are ${processors}`,
      why: 'they wait for each other, and each has its part of max_flows alone',
      fix: `write workers = ${processors}, or "auto"`,
    },
  ];
}
