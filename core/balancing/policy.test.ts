/** The six policies against the laws. */
import { createPolicy } from './create-policy.ts';
import { affinityLaws, policyLaws } from './policy.laws.ts';

policyLaws('ROUND_ROBIN', (tools) => createPolicy('ROUND_ROBIN', tools), 'even');
policyLaws('RANDOM', (tools) => createPolicy('RANDOM', tools), 'weight');
policyLaws('LEAST_LOADED', (tools) => createPolicy('LEAST_LOADED', tools), 'load');
policyLaws('POWER_OF_TWO', (tools) => createPolicy('POWER_OF_TWO', tools), 'load');
policyLaws('HRW', (tools) => createPolicy('HRW', tools), 'weight');
policyLaws('MAGLEV', (tools) => createPolicy('MAGLEV', tools), 'weight');

affinityLaws('HRW', (tools) => createPolicy('HRW', tools));
affinityLaws('MAGLEV', (tools) => createPolicy('MAGLEV', tools));
