/** Texts out of files, made safe for a terminal. */

/** Escape sequences and whatever turns the direction are spelled out; line ends stay. */
export function printable(text: string): string {
  return text.replace(/(?!\n)[\p{Cc}\p{Bidi_Control}]/gu, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}
