/**
 * Documents that promise a behaviour quote the test that shows it: the file in backticks, then the words of its name in double
 * quotes. A promise whose test was renamed or has gone is found here.
 */
import { finding, lineAt, type Rule } from './files.ts';

const QUOTED_TEST = /`([\w./-]+\.(?:test|laws)\.ts)`\s+"([^"]+)"/g;

/** `textOf` gives the text of a file of the repository, or undefined when there is none. */
export function quotedTestRule(textOf: (path: string) => string | undefined): Rule {
  return (file) => {
    if (!file.path.endsWith('.md')) return [];
    return [...file.text.matchAll(QUOTED_TEST)].flatMap((match) => {
      const [, path = '', name = ''] = match;
      const words = name.replaceAll(/\s+/g, ' ');
      if (textOf(path)?.includes(words) === true) return [];
      return finding(
        file,
        lineAt(file, match.index),
        `${path} has no test "${words}"; quote another`,
      );
    });
  };
}
