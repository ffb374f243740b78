/**
 * What the manual says of a key, kept beside its schema: validation and doc/CONFIGURE.md read the same object, so neither
 * can drift from the other.
 */
import * as z from 'zod';

export interface KeyNotes {
  readonly meaning: string;
  readonly unit?: string;
  /** Where the default is not a plain value of the schema. */
  readonly fallback?: string;
  /** Why the default is what it is, where another would have been possible: a sentence. */
  readonly reason?: string;
  /** `Sōzu`: Sōzu's word with Sōzu's meaning. `ours`: Sōzu refuses the key. */
  readonly origin: 'Sōzu' | 'ours';
}

export interface DocumentedTable {
  /** As an operator writes it. */
  readonly header: string;
  readonly shape: Readonly<Record<string, z.ZodType>>;
}

const notes = z.registry<KeyNotes>();

/** Undefined for the keys of other protocols, which the manual only lists. */
export function notesOf(schema: z.ZodType): KeyNotes | undefined {
  return notes.get(schema);
}

export function sozu<S extends z.ZodType>(schema: S, meaning: string, unit?: string): S {
  return note(schema, { meaning, origin: 'Sōzu', ...(unit === undefined ? {} : { unit }) });
}

export function ours<S extends z.ZodType>(schema: S, meaning: string, unit?: string): S {
  return note(schema, { meaning, origin: 'ours', ...(unit === undefined ? {} : { unit }) });
}

/** What applies where the key is not written, in the manual's words. */
export function withFallback<S extends z.ZodType>(schema: S, fallback: string): S {
  const known = notes.get(schema);
  return known === undefined ? schema : note(schema, { ...known, fallback });
}

export function withReason<S extends z.ZodType>(schema: S, reason: string): S {
  const known = notes.get(schema);
  return known === undefined ? schema : note(schema, { ...known, reason });
}

function note<S extends z.ZodType>(schema: S, about: KeyNotes): S {
  notes.add(schema, about);
  return schema;
}

/** Sōzu's numbers have 32 bits. */
export function u32(): z.ZodInt {
  return z.int().min(0).max(0xffff_ffff);
}

/** No file system has a name with a NUL in it; what would be asked for such a file fails much later. */
export function fileName(lengthMin = 1): z.ZodString {
  return z
    .string()
    .min(lengthMin)
    .refine((text) => !text.includes('\0'), {
      error: 'a path with a NUL in it',
      params: { fix: 'write a path without \\u0000' },
    });
}
