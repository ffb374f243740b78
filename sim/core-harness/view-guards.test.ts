import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { instant } from '../../core/time.ts';
import { LOSSES, REFUSALS } from './actions.ts';
import { GuardModel } from './model-guards.ts';
import { BACKEND_ADDRESSES, HOST_COUNT, SOURCES } from './pools.ts';
import { ViewGuards } from './view-guards.ts';

test('the view keeps out whom the model keeps out, whatever their port and zone', () => {
  fc.assert(
    fc.property(fc.nat(2 ** HOST_COUNT - 1), (hosts) => {
      const { view, model } = both();
      view.deny(hosts);
      model.deny({ kind: 'Deny', hosts });
      expect(SOURCES.map((src) => view.denies(src))).toEqual(
        SOURCES.map((_, source) => model.denies(source)),
      );
    }),
  );
});

test('the view refuses when the model refuses, up to the very moment', () => {
  fc.assert(
    fc.property(fc.constantFrom(...REFUSALS), fc.nat(20), fc.nat(30_000), (refusal, ms, now) => {
      const { view, model } = both();
      view.refuse(refusal, 5_000 + ms * 1_000);
      model.refuse({ kind: 'Refuse', refusal, ms }, 5_000);
      expect(view.refuses(instant(now))).toBe(model.refusalAt(now));
    }),
  );
});

test('only who is on a lost backend meets its policy', () => {
  fc.assert(
    fc.property(fc.nat(3), fc.nat(15), fc.constantFrom(...LOSSES), (backend, lost, policy) => {
      const { view, model } = both();
      view.setPolicy(backend, policy);
      model.setPolicy(backend, policy);
      for (const [place, address] of BACKEND_ADDRESSES.entries()) {
        const isLost = ((lost >> place) & 1) === 1;
        expect(view.fateOf(address, lost)).toBe(model.fateOf(place, isLost));
      }
    }),
  );
});

test('whoever checks asks no question', () => {
  const { view } = both();
  view.keepsOut(SOURCES[0]!);
  view.refusalAt(instant(0));
  view.policyOf(BACKEND_ADDRESSES[0]!, 15);
  expect(view).toMatchObject({ denialsAsked: 0, refusalsAsked: 0, fatesAsked: 0 });
});

function both(): { readonly view: ViewGuards; readonly model: GuardModel } {
  return { view: new ViewGuards(), model: new GuardModel() };
}
