/** The oracles that judge what becomes of datagrams. All but one share the book of sim/world/traffic/. */
import type { OracleKind } from '../oracle.ts';
import { AMPLIFICATION } from './amplification.ts';
import { BYTES } from './bytes.ts';
import { CLOSED_BACKENDS } from './closed-backends.ts';
import { CONSERVATION } from './conservation.ts';
import { LOSSES } from './losses.ts';
import { PROXY_HEADERS } from './proxy-headers.ts';
import { REPLIES } from './replies.ts';
import { STICKY_BACKEND } from './sticky-backend.ts';

export const TRAFFIC_ORACLES: readonly OracleKind[] = [
  AMPLIFICATION,
  BYTES,
  CLOSED_BACKENDS,
  CONSERVATION,
  LOSSES,
  PROXY_HEADERS,
  REPLIES,
  STICKY_BACKEND,
];
