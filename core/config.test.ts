/** How limits are resolved: the rows of spec §12.3 and §6.6. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { automaticMaxFlows, clampMaxRx, effectiveMaxFlows, LIMITS } from './config.ts';

const descriptors = fc.option(fc.nat(2_000_000), { nil: undefined });

test('effective_max_flows_explicit_value_is_used: verbatim, whatever descriptors and connections say', () => {
  const explicit = fc.integer({ min: 1, max: LIMITS.flowsCeiling });
  fc.assert(
    fc.property(explicit, descriptors, fc.nat(), (configured, limit, connections) => {
      expect(effectiveMaxFlows(configured, limit, connections)).toBe(configured);
    }),
  );
});

test('effective_max_flows_auto_is_positive: even with no descriptor at all', () => {
  fc.assert(
    fc.property(descriptors, fc.nat(), (limit, connections) => {
      expect(effectiveMaxFlows(0, limit, connections)).toBeGreaterThanOrEqual(1);
    }),
  );
  expect(effectiveMaxFlows(0, 0, 0)).toBe(1);
});

test('effective_max_flows_auto_is_clamped_to_slab_headroom: never above max_connections, unless that is 0', () => {
  fc.assert(
    fc.property(descriptors, fc.integer({ min: 1 }), (limit, connections) => {
      expect(effectiveMaxFlows(0, limit, connections)).toBeLessThanOrEqual(connections);
    }),
  );
  expect(automaticMaxFlows(1_000_000, LIMITS.maxConnections)).toBe(10_000);
  expect(automaticMaxFlows(1_000_000, 0)).toBe(700_000);
});

test('the automatic value is seven tenths of the descriptors, rounded down, or 1,024 when nobody knows them', () => {
  expect(automaticMaxFlows(1_024, 0)).toBe(716);
  expect(automaticMaxFlows(1, 0)).toBe(1);
  expect(automaticMaxFlows(undefined, 0)).toBe(1_024);
  expect(automaticMaxFlows(undefined, 500)).toBe(500);
});

test('no table is made larger than its ceiling', () => {
  expect(effectiveMaxFlows(LIMITS.flowsCeiling + 1, undefined, 0)).toBe(LIMITS.flowsCeiling);
});

test('clamp_max_rx_respects_buffer_size: the smaller of the two; 0 is no clamp', () => {
  expect(clampMaxRx(1_500, LIMITS.bufferSize)).toBe(1_500);
  expect(clampMaxRx(65_507, LIMITS.bufferSize)).toBe(16_393);
  expect(clampMaxRx(65_507, 0)).toBe(65_507);
});
