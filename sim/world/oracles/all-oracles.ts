/** All oracles of the world. */
import type { OracleKind } from '../oracle.ts';
import { COVERAGE } from '../coverage.ts';
import { BASELINE } from './baseline.ts';
import { DESCRIPTORS } from './descriptors.ts';
import { HEALTH } from './health.ts';
import { IDLE_SPIN } from './idle-spin.ts';
import { INVARIANTS } from './invariants.ts';
import { LIMITS_KEPT } from './limits.ts';
import { LIVENESS } from './liveness.ts';
import { PLANE_GROUP } from './plane-group.ts';
import { RECONFIGURATION } from './reconfiguration.ts';
import { TIMELINESS } from './timeliness.ts';
import { TRACES_REPLAY } from './replays.ts';
import { TRAFFIC_ORACLES } from './traffic-oracles.ts';

export const ORACLES: readonly OracleKind[] = [
  BASELINE,
  ...TRAFFIC_ORACLES,
  COVERAGE,
  DESCRIPTORS,
  HEALTH,
  IDLE_SPIN,
  INVARIANTS,
  LIMITS_KEPT,
  LIVENESS,
  PLANE_GROUP,
  RECONFIGURATION,
  TIMELINESS,
  TRACES_REPLAY,
];
