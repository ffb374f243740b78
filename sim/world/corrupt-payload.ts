/** Bytes changed on the way, as bad memory and bad offloads change them: the checksum still fits. */
import type { Random } from '../random.ts';
import type { Corruption } from './packet.ts';

/** A changed copy; undefined when there is nothing to change, or no room. */
export function corruptPayload(
  payload: Uint8Array,
  how: Corruption,
  random: Random,
): Uint8Array | undefined {
  if (how === 'extend') {
    return payload.length + EXTENSION_MAX > PAYLOAD_MAX ? undefined : extend(payload, random);
  }
  if (payload.length === 0) return undefined;
  if (how === 'flip') return flip(payload, random);
  return payload.slice(0, random.choose('corruption.cut', payload.length));
}

/** The largest payload of a datagram over IPv4. */
const PAYLOAD_MAX = 65_507;

const EXTENSION_MAX = 16;

function flip(payload: Uint8Array, random: Random): Uint8Array {
  const bit = random.choose('corruption.flip', payload.length * 8);
  const changed = payload.slice();
  changed[bit >>> 3] = (payload[bit >>> 3] ?? 0) ^ (1 << (bit & 7));
  return changed;
}

function extend(payload: Uint8Array, random: Random): Uint8Array {
  const more = random.between('corruption.extend', 1, EXTENSION_MAX);
  const changed = new Uint8Array(payload.length + more);
  changed.set(payload);
  return changed.fill(random.choose('corruption.filler', 256), payload.length);
}
