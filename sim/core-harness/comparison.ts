/** Whether an output is the one the shadow model expects, field by field; payloads by every byte. */
import { sameAddress } from '../../core/address.ts';
import { assertNever, present } from '../../core/assert.ts';
import type { Output } from '../../core/contract.ts';
import { byteOf, type Payload } from './actions.ts';
import type { Expected } from './model-expected.ts';
import { naiveHeader } from './naive-placement.ts';
import { BACKEND_ADDRESSES, SOURCES, sourceAt } from './pools.ts';

/** All headers there can be, by source and backend. */
const HEADERS: readonly (readonly Uint8Array[])[] = SOURCES.map((source) =>
  BACKEND_ADDRESSES.map((backend) => naiveHeader(source, backend)),
);

export function matches(expected: Expected, actual: Output): boolean {
  switch (actual.kind) {
    case 'Metric':
      return sameMetric(expected, actual);
    case 'SendToBackend':
      return sameForward(expected, actual);
    case 'SendToClient':
      return sameReturn(expected, actual);
    case 'ArmTimer':
      return expected.kind === 'ArmTimer' && actual.at === expected.at;
    case 'OpenUpstream':
      return sameOpen(expected, actual);
    case 'CloseFlow':
      return sameClose(expected, actual);
    case 'Drop':
      return expected.kind === 'Drop' && actual.reason === expected.reason;
    // The harness takes them apart first.
    case 'TrainToBackend':
    case 'TrainToClient':
      return false;
    default:
      return assertNever(actual);
  }
}

type Given<Kind extends Output['kind']> = Extract<Output, { kind: Kind }>;

function sameMetric(expected: Expected, actual: Given<'Metric'>): boolean {
  if (expected.kind !== 'Metric') return false;
  const bytes = 'bytes' in actual.event ? actual.event.bytes : 0;
  return actual.event.kind === expected.event && bytes === expected.bytes;
}

function sameForward(expected: Expected, actual: Given<'SendToBackend'>): boolean {
  return (
    expected.kind === 'SendToBackend' &&
    actual.flow === expected.flow &&
    sameAddress(actual.dst, backendAt(expected.backend)) &&
    sameHeader(actual.prefix, expected)
  );
}

function sameReturn(expected: Expected, actual: Given<'SendToClient'>): boolean {
  return (
    expected.kind === 'SendToClient' &&
    actual.flow === expected.flow &&
    actual.from === undefined &&
    sameAddress(actual.dst, sourceAt(expected.source))
  );
}

function sameOpen(expected: Expected, actual: Given<'OpenUpstream'>): boolean {
  return (
    expected.kind === 'OpenUpstream' &&
    actual.flow === expected.flow &&
    sameAddress(actual.backend.address, backendAt(expected.backend))
  );
}

function sameClose(expected: Expected, actual: Given<'CloseFlow'>): boolean {
  return (
    expected.kind === 'CloseFlow' &&
    actual.flow === expected.flow &&
    actual.reason === expected.reason
  );
}

/** Whether `view` holds exactly the payload that was lent. */
export function sameBytes(view: Uint8Array, payload: Payload): boolean {
  if (view.length !== payload.length) return false;
  for (let index = 0; index < view.length; index += 1) {
    if (view[index] !== byteOf(payload, index)) return false;
  }
  return true;
}

function sameHeader(
  actual: Uint8Array | undefined,
  expected: Extract<Expected, { kind: 'SendToBackend' }>,
): boolean {
  if (actual === undefined) return !expected.header;
  const wanted = HEADERS[expected.source]?.[expected.backend];
  return (
    expected.header &&
    wanted?.length === actual.length &&
    wanted.every((byte, index) => byte === actual[index])
  );
}

function backendAt(index: number): (typeof BACKEND_ADDRESSES)[number] {
  return present(BACKEND_ADDRESSES[index], 'a backend of the pool');
}
