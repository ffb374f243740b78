/** CRC-32 (IEEE 802.3, reflected), which tells a damaged block of a trace from one that says something else. */

const POLYNOMIAL = 0xedb88320;
const TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let word = byte;
  for (let bit = 0; bit < 8; bit += 1)
    word = (word & 1) === 1 ? (word >>> 1) ^ POLYNOMIAL : word >>> 1;
  return word;
});

/** Of `bytes` behind one more byte, as a signed 32-bit integer. */
export function checksum(bytes: Uint8Array, first: number): number {
  let word = step(-1, first);
  for (const byte of bytes) word = step(word, byte);
  return ~word;
}

function step(word: number, byte: number): number {
  return (word >>> 8) ^ (TABLE[(word ^ byte) & 0xff] ?? 0);
}
