/** The token of the HTTP server, from a file that only its owner should read. */
import { readFileSync, statSync } from 'node:fs';

/** Shorter ones can be guessed. */
const TOKEN_LENGTH_MIN = 16;
const FILE_BYTES_MAX = 4_096;

/** The first line of the file. Throws an Error that says what is wrong, for an operator. */
export function readToken(file: string): string {
  const { size, mode } = statSync(file);
  if (size > FILE_BYTES_MAX) throw new Error(`${file} has more than ${FILE_BYTES_MAX} bytes`);
  if ((mode & 0o007) !== 0) throw new Error(`${file} may be read by everybody: chmod o= it`);
  const [token = ''] = readFileSync(file, 'utf8').split('\n');
  if (!/^[\x21-\x7e]+$/.test(token) || token.length < TOKEN_LENGTH_MIN) {
    const wanted = `${TOKEN_LENGTH_MIN} characters or more, without blanks`;
    throw new Error(`the first line of ${file} is no token of ${wanted}`);
  }
  return token;
}
