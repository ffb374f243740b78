/** As much DNS as the tests need: one question, one A record (RFC 1035 §4). */

const HEADER_BYTES = 12;
const RECURSION_DESIRED = 0x0100;
const TYPE_A = 1;
const CLASS_IN = 1;

/** A query for the A record of `name`. */
export function query(id: number, name: string): Buffer {
  const labels = name.split('.').filter((label) => label !== '');
  const question = labels.map((label) =>
    Buffer.concat([Buffer.of(label.length), Buffer.from(label)]),
  );
  return Buffer.concat([
    words(id, RECURSION_DESIRED, 1, 0, 0, 0),
    ...question,
    Buffer.of(0),
    words(TYPE_A, CLASS_IN),
  ]);
}

/** What a response says; `address` is its last four bytes when there is one answer and nothing after it. */
export function readResponse(response: Buffer): { id: number; rcode: number; address: string } {
  if (response.length < HEADER_BYTES)
    throw new Error(`${response.length} bytes are no DNS message`);
  const flags = response.readUInt16BE(2);
  const answers = response.readUInt16BE(6);
  const address = answers === 1 ? [...response.subarray(-4)].join('.') : '';
  return { id: response.readUInt16BE(0), rcode: flags & 0xf, address };
}

function words(...numbers: readonly number[]): Buffer {
  const bytes = Buffer.alloc(2 * numbers.length);
  for (const [index, number] of numbers.entries()) bytes.writeUInt16BE(number, 2 * index);
  return bytes;
}
