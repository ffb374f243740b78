/**
 * A balancing policy of one's own: a canary. A fixed share of the clients, always the same ones, tries one backend.
 * Outside this repository the import is from 'sozu-udp/core'.
 */
import { createPolicy, type PolicyFactory } from '../core/index.ts';

/** `percent` of the affinity keys go to the backend `id` while it may be chosen; HRW places all others. */
export function canary(id: string, percent: number): PolicyFactory {
  return (tools) => {
    const placement = createPolicy('HRW', tools);
    return {
      select(candidates, key, now) {
        const trial = candidates.find((candidate) => candidate.id === id);
        if (trial !== undefined && key !== undefined && key.low % 100 < percent) return trial;
        const steady = candidates.filter((candidate) => candidate !== trial);
        return placement.select(steady.length > 0 ? steady : candidates, key, now);
      },
    };
  };
}
