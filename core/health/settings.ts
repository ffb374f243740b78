/**
 * How a cluster's backends are watched (spec §1.5), in the core's units.
 *
 * The folder in one paragraph: `probe-plan.ts` decides who is probed when and hands each result to `hysteresis.ts`, which
 * says up or down; `passive.ts` reads the data path (refusals, missing answers) and takes a backend out for a while;
 * `roll-up.ts` adds a cluster's backends up. None of them reads a clock or opens a socket, and none knows another but by
 * the words below: whoever owns them passes what one says to the next. A backend may be chosen when the plan says up and
 * it is not ejected.
 */
import { assert } from '../assert.ts';
import { seconds, type Duration } from '../time.ts';

/** TCP_PROBE is TCP only, UDP_PROBE is UDP only (decisions of the design; the reference mixes them). */
export type HealthMode = 'HEALTH_OFF' | 'TCP_PROBE' | 'UDP_PROBE';

export interface HealthSettings {
  readonly mode: HealthMode;
  /** Port of a TCP probe; the backend's own when undefined. A UDP probe always goes to the backend's own. */
  readonly tcpPort: number | undefined;
  /** Successes in a row until a backend that is down is up, at least 1. */
  readonly rise: number;
  /** Failures in a row until a backend that is up is down, at least 1. */
  readonly fall: number;
  /** Whether every backend is tried when none is available. */
  readonly failOpen: boolean;
  /** What a UDP probe sends. UDP_PROBE has one. Never written to. */
  readonly udpProbePayload: Uint8Array | undefined;
  /** Whether silence fails a UDP probe. When false, silence says nothing, and only a refusal is a failure. */
  readonly expectReply: boolean;
  /** The longest time between the starts of two probes of one backend. */
  readonly probeInterval: Duration;
  /** An answer that takes this long or longer is a failure. */
  readonly probeTimeout: Duration;
}

export const HEALTH_DEFAULTS: HealthSettings = {
  mode: 'TCP_PROBE',
  tcpPort: undefined,
  rise: 2,
  fall: 3,
  failOpen: true,
  udpProbePayload: undefined,
  expectReply: true,
  probeInterval: seconds(5),
  probeTimeout: seconds(2),
};

/**
 * Settings from what was given and the defaults; a rise, fall, interval or timeout of 0 counts as 1 (seconds). Throws on
 * UDP_PROBE without a payload, which a configuration parser has to refuse.
 */
export function healthSettings(given: Partial<HealthSettings>): HealthSettings {
  const wanted = { ...HEALTH_DEFAULTS, ...given };
  assert(
    wanted.mode !== 'UDP_PROBE' || (wanted.udpProbePayload?.length ?? 0) > 0,
    'a UDP probe has a payload to send',
  );
  return {
    ...wanted,
    rise: Math.max(1, wanted.rise),
    fall: Math.max(1, wanted.fall),
    probeInterval: wanted.probeInterval === 0 ? seconds(1) : wanted.probeInterval,
    probeTimeout: wanted.probeTimeout === 0 ? seconds(1) : wanted.probeTimeout,
  };
}
