/** Which programs can be measured here. Whatever cannot is a note, never a failure. */
import type { Contender } from './contenders.ts';

export interface Absent {
  readonly name: string;
  readonly why: string;
}

/** Each of the programs that cannot be had, once; `note` hears of it. */
export function absentOf(
  asked: readonly Pick<Contender, 'name' | 'missing'>[],
  note: (text: string) => void,
): Absent[] {
  const byName = new Map(asked.map((one) => [one.name, one]));
  return [...byName.values()].flatMap((one) => {
    const why = one.missing();
    if (why === undefined) return [];
    note(`${one.name} is left out: ${why}`);
    return [{ name: one.name, why }];
  });
}

export function presentOf(
  contenders: readonly Contender[],
  absent: readonly Absent[],
): Contender[] {
  return contenders.filter((one) => !absent.some(({ name }) => name === one.name));
}
