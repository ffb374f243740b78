/** The scenarios of the whole proxy by name, in the order in which they are listed and swept. */
import type { WorldScenario } from '../sim/index.ts';
import { BACKEND_FLAP } from './world/backend-flap.ts';
import { CAP_SHRINK } from './world/cap-shrink.ts';
import { DNS_BURST } from './world/dns-burst.ts';
import { DRAIN_UNDER_LOAD } from './world/drain-under-load.ts';
import { LONG_LIVED } from './world/long-lived.ts';
import { RECONFIG_STORM } from './world/reconfig-storm.ts';
import { ROLLING_DEPLOY } from './world/rolling-deploy.ts';
import { SYSLOG_ONE_WAY } from './world/syslog-one-way.ts';
import { TWO_ANSWERS } from './world/two-answers.ts';

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
];
