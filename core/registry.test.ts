/** Values by small number: counted by user, gone with the last. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { Registry } from './registry.ts';

test('one value has one number, however often it is acquired', () => {
  const registry = new Registry<string>();
  expect([registry.acquire('a'), registry.acquire('b'), registry.acquire('a')]).toEqual([0, 1, 0]);
  expect([registry.usersOf(0), registry.usersOf(1), registry.size]).toEqual([2, 1, 2]);
  expect([registry.get(0), registry.find('b'), registry.find('c')]).toEqual(['a', 1, undefined]);
});

test('values are told apart by identity, not by what they hold', () => {
  const registry = new Registry<object>();
  expect([registry.acquire({}), registry.acquire({})]).toEqual([0, 1]);
});

test('the last release frees the number for another value', () => {
  const registry = new Registry<string>();
  registry.acquire('a');
  registry.acquire('a');
  registry.release(0);
  expect(registry.get(0)).toBe('a');
  registry.release(0);
  expect(() => registry.get(0)).toThrow('a number in use');
  expect(registry.find('a')).toBeUndefined();
  expect(registry.acquire('b')).toBe(0);
});

test('releasing what nobody uses is a bug of the caller', () => {
  const registry = new Registry<string>();
  expect(() => registry.release(0)).toThrow('released');
  registry.acquire('a');
  registry.release(0);
  expect(() => registry.release(0)).toThrow('released');
});

test('in any order of acquiring and releasing, the counts are those of a Map, and numbers stay small', () => {
  const act = fc.tuple(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'), fc.boolean());
  fc.assert(
    fc.property(fc.array(act, { maxLength: 100, size: 'max' }), (acts) => {
      const registry = new Registry<string>();
      const model = new Map<string, number>();
      let most = 0;
      for (const [value, acquires] of acts) {
        const users = model.get(value) ?? 0;
        const number = registry.find(value);
        expect(number !== undefined).toBe(users > 0);
        if (acquires) registry.acquire(value);
        else if (number !== undefined) registry.release(number);
        const left = acquires ? users + 1 : Math.max(0, users - 1);
        if (left === 0) model.delete(value);
        else model.set(value, left);
        most = Math.max(most, model.size);
        expect(registry.size).toBe(model.size);
        for (const [known, count] of model) {
          const at = registry.find(known) ?? -1;
          expect([registry.get(at), registry.usersOf(at)]).toEqual([known, count]);
          expect(at).toBeLessThan(most);
        }
      }
    }),
  );
});
