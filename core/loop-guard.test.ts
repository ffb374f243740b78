/** Loops: a datagram from ourselves or from a backend is not a client's (decisions table "loops"). */
import { expect, test } from 'vitest';
import {
  backendsOf,
  clusterSettings,
  configOf,
  listenerConfig,
  PlaneBench,
} from '../test/plane-bench.ts';
import { parseAddress, type Address } from './address.ts';
import { listenerId } from './brand.ts';
import { droppedDatagrams } from './metrics.ts';

const LISTENER = '10.1.1.1:5300';

test('a datagram from a listener of ours is Invalid, counted apart, and opens nothing', () => {
  const bench = new PlaneBench(
    configOf([clusterSettings()], [listenerConfig({ address: at(LISTENER) })]),
  );
  expect(send(bench, LISTENER)).toEqual({ loops: 1, invalid: 1, flows: 0 });
});

test('a datagram from a backend of any cluster is Invalid, from another port of its host it is not', () => {
  const bench = new PlaneBench(configOf([clusterSettings({ backends: backendsOf(1) })]));
  expect(send(bench, '10.0.0.1:53')).toEqual({ loops: 1, invalid: 1, flows: 0 });
  expect(send(bench, '10.0.0.1:54')).toEqual({ loops: 1, invalid: 1, flows: 1 });
});

test('allow_backend_as_client lets a backend ask, a listener never', () => {
  const settings = clusterSettings({ backends: backendsOf(1), allowBackendAsClient: true });
  const bench = new PlaneBench(configOf([settings], [listenerConfig({ address: at(LISTENER) })]));
  expect(send(bench, '10.0.0.1:53')).toEqual({ loops: 0, invalid: 0, flows: 1 });
  expect(send(bench, LISTENER)).toEqual({ loops: 1, invalid: 1, flows: 1 });
});

/** What the listener has counted after a datagram from `source`. */
function send(
  bench: PlaneBench,
  source: string,
): { loops: number; invalid: number; flows: number } {
  bench.turn(() =>
    bench.pump.clientDatagram(listenerId(0), at(source), undefined, Uint8Array.of(1)),
  );
  const counters = bench.plane.countersOf(listenerId(0));
  expect(counters && droppedDatagrams(counters)).toBe(counters?.loopsRefused);
  return {
    loops: counters?.loopsRefused ?? -1,
    invalid: counters?.droppedInvalid ?? -1,
    flows: bench.plane.flowCount,
  };
}

function at(text: string): Address {
  return parseAddress(text)!;
}
