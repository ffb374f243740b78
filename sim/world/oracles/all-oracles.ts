/** All oracles of the world. */
import type { OracleKind } from '../oracle.ts';
import { CONSERVATION } from './conservation.ts';

export const ORACLES: readonly OracleKind[] = [CONSERVATION];
