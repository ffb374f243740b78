/** The presets as the manual shows them: what each sets, and why. */
import { PRESET_NAMES, PRESETS } from '../../core/presets.ts';
import { seconds } from '../../core/time.ts';
import { alignTable } from './markdown-table.ts';

/** A row for each key that some preset sets, a column for each preset; an empty cell is the plain default. */
export function presetValues(): string {
  const said = statements();
  const keys = [...new Set(said.map(({ key }) => key))];
  const rows = keys.map((key) => [
    key,
    ...PRESET_NAMES.map(
      (name) => said.find((one) => one.key === key && one.preset === name)?.value ?? '',
    ),
  ]);
  return alignTable([['key', ...PRESET_NAMES.map((name) => `\`${name}\``)], ...rows]);
}

/** A row for each reason, with all keys and presets that it holds for. */
export function presetReasons(): string {
  const said = statements();
  const keyOrder = [...new Set(said.map(({ key }) => key))];
  const byKey = keyOrder.flatMap((key) => said.filter((one) => one.key === key));
  const rows = new Map<string, { value: string; keys: Set<string>; presets: Set<string> }>();
  for (const { key, preset, value, reason } of byKey) {
    const row = rows.get(reason) ?? { value, keys: new Set(), presets: new Set() };
    rows.set(reason, { value, keys: row.keys.add(key), presets: row.presets.add(`\`${preset}\``) });
  }
  const body = [...rows].map(([reason, { value, keys, presets }]) => [
    [...keys].join(' '),
    value,
    presets.size === PRESET_NAMES.length ? 'every preset' : [...presets].join(' '),
    reason,
  ]);
  return alignTable([['key', 'value', 'preset', 'why'], ...body]);
}

interface Statement {
  readonly preset: string;
  /** As an operator writes it, in backticks. */
  readonly key: string;
  readonly value: string;
  readonly reason: string;
}

function statements(): readonly Statement[] {
  return PRESET_NAMES.flatMap((preset) =>
    Object.entries(PRESETS[preset]).map(([key, { value, reason }]) => {
      return { preset, key: `\`${tomlKey(key)}\``, value: tomlValue(key, value), reason };
    }),
  );
}

/** The core's names are those of the file, in its own spelling. */
function tomlKey(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function tomlValue(key: string, value: string | number | boolean): string {
  if (typeof value === 'number' && key.endsWith('Timeout')) return `${value / seconds(1)} s`;
  return `\`${JSON.stringify(value)}\``;
}
