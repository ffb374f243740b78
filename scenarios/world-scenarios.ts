/** The scenarios that raise the whole proxy in a world, in the order in which they are listed and swept. */
import type { WorldScenario } from '../sim/index.ts';
import { ASYMMETRIC_LOSS } from './world/asymmetric-loss.ts';
import { BACKEND_FLAP } from './world/backend-flap.ts';
import { CAP_SHRINK } from './world/cap-shrink.ts';
import { CLOCK_JUMP } from './world/clock-jump.ts';
import { DNS_BURST } from './world/dns-burst.ts';
import { DRAIN_UNDER_LOAD } from './world/drain-under-load.ts';
import { DUAL_STACK } from './world/dual-stack.ts';
import { FD_EXHAUSTION } from './world/fd-exhaustion.ts';
import { ICMP_STORM } from './world/icmp-storm.ts';
import { LONG_LIVED } from './world/long-lived.ts';
import { LOOP } from './world/loop.ts';
import { MANY_WORKERS } from './world/many-workers.ts';
import { NAT_REBIND } from './world/nat-rebind.ts';
import { PORT_EXHAUSTION } from './world/port-exhaustion.ts';
import { RECONFIG_STORM } from './world/reconfig-storm.ts';
import { ROLLING_DEPLOY } from './world/rolling-deploy.ts';
import { SLOW_BACKEND } from './world/slow-backend.ts';
import { SPOOFED_FLOOD } from './world/spoofed-flood.ts';
import { SYSLOG_ONE_WAY } from './world/syslog-one-way.ts';
import { TWO_ANSWERS } from './world/two-answers.ts';
import { WORLD_SWARM } from './world/world-swarm.ts';

export const WORLD_SCENARIOS: readonly WorldScenario[] = [
  DNS_BURST,
  TWO_ANSWERS,
  SYSLOG_ONE_WAY,
  LONG_LIVED,
  BACKEND_FLAP,
  ROLLING_DEPLOY,
  RECONFIG_STORM,
  CAP_SHRINK,
  DRAIN_UNDER_LOAD,
  PORT_EXHAUSTION,
  FD_EXHAUSTION,
  SPOOFED_FLOOD,
  NAT_REBIND,
  CLOCK_JUMP,
  ICMP_STORM,
  ASYMMETRIC_LOSS,
  SLOW_BACKEND,
  DUAL_STACK,
  LOOP,
  MANY_WORKERS,
  WORLD_SWARM,
];
