/** Data of the core as JSON: addresses as text, bytes in base64, times as they are, in microseconds. */
import { formatAddress, type Address } from '../../core/index.ts';

/** Of the documents that the HTTP server sends; a change that takes something away raises it. */
export const JSON_SCHEMA = 1;

/** One line, whatever the data. */
export function toJson(data: unknown): string {
  return JSON.stringify(data, (_, value: unknown) => {
    if (isAddress(value)) return formatAddress(value);
    return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value;
  });
}

function isAddress(value: unknown): value is Address {
  if (typeof value !== 'object' || value === null) return false;
  return 'family' in value && 'port' in value && 'a' in value && 'd' in value;
}
