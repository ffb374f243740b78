/** Text from outside, names of a configuration or of files, on its way to a terminal. */

/** Without what a terminal obeys: line ends, escape sequences, whatever turns its direction. JSON still says the same. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

/** The same of text that has line ends of its own. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}
