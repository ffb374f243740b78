/** Pieces of the client that need no proxy: values, tables, completion, help. With one: test/e2e/control.e2e.test.ts. */
import { execFileSync } from 'node:child_process';
import { Command } from 'commander';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { completionScript, SHELLS } from './completion.ts';
import { addControlCommands } from './control.ts';
import { addSetting, parseDuration, tomlValue } from './leaf.ts';
import { oneLine, render, table } from './render.ts';

const PLAIN = { colour: false };

describe('values of options', () => {
  test('are what they would be in a file, and else text', () => {
    expect(['7', 'true', '"x"', '[1, 2]', 'HRW', '10.0.0.1:53', ''].map(tomlValue)).toEqual([
      7,
      true,
      'x',
      [1, 2],
      'HRW',
      '10.0.0.1:53',
      '',
    ]);
    expect(tomlValue('1979-05-27')).toBe('1979-05-27');
    expect(tomlValue('1\ny = 2')).toBe('1\ny = 2');
  });

  test('of settings gather in tables, whatever is written', () => {
    const given = ['load_balancing=HRW', 'udp.requests=2', 'udp.limits.deny=["10.0.0.0/8"]'];
    expect(given.reduce((sum, text) => addSetting(text, sum), {})).toEqual({
      load_balancing: 'HRW',
      udp: { requests: 2, limits: { deny: ['10.0.0.0/8'] } },
    });
    expect(() => addSetting('udp.requests')).toThrow('KEY=VALUE');
    fc.assert(
      fc.property(fc.string(), (text) => {
        tomlValue(text);
        addSetting(`a.b=${text}`, { a: 1 });
      }),
    );
  });

  test('of times have a unit, seconds unless given', () => {
    expect(['2s', '500ms', '1m', '1h', '90'].map(parseDuration)).toEqual([
      2_000, 500, 60_000, 3_600_000, 90_000,
    ]);
    for (const wrong of ['', '-1s', '1.5s', '1d', 's']) {
      expect(() => parseDuration(wrong)).toThrow('such as 2s');
    }
  });
});

describe('answers for people', () => {
  test('are lines, tables and what is nested, in this order', () => {
    const rows = [{ x: 1, y: 'one' }, { x: 22 }];
    const answer = { a: 1, rows, none: [], names: ['m', 'n'], inner: { b: true }, c: null };
    expect(render(answer, PLAIN)).toBe(
      'a: 1\nc: \n\nrows\n x  y\n 1  one\n22\n\nnames\n  m\n  n\n\ninner\n  b: yes\n',
    );
    expect(render({ rows: [{ x: 1 }] }, PLAIN)).toBe('x\n1\n');
    expect(render({ rows: [] }, PLAIN)).toBe('none\n');
    expect(oneLine({ kind: 'x', evidence: { a: 1 } })).toBe('kind=x evidence=(a=1)');
  });

  test('in one line keep apart what has spaces, lists and what is nested', () => {
    const rows = [{ fix: 'remove it', line: 3 }, { fix: 'x' }];
    expect(oneLine({ error: 'the file has errors', ok: false, rows })).toBe(
      'error="the file has errors" ok=no rows=[(fix="remove it" line=3), (fix=x)]',
    );
  });

  test('never carry control characters, nor what turns the direction of text', () => {
    const nasty = 'a\u001b[2J\u0007\u202eb\r';
    const anything = fc.jsonValue({ maxDepth: 3 });
    fc.assert(
      fc.property(anything, fc.string(), (value, key) => {
        const text = render(
          { [`${key}${nasty}`]: nasty, value, rows: [{ [nasty]: value }] },
          PLAIN,
        );
        expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u);
      }),
    );
    expect(table([{ [nasty]: nasty }], PLAIN)).not.toContain('\u001b');
  });
});

describe('the commands', () => {
  test('each have a summary and an example that the program itself takes', () => {
    for (const { command, path } of leaves(program())) {
      expect(command.description(), path).not.toBe('');
      const example = exampleOf(command);
      expect(example, path).toContain(`sozu-udp ${path}`);
      for (const option of example.match(/--[a-z-]+/g) ?? []) {
        expect(command.options.map(({ long }) => long)).toContain(option);
      }
    }
  });

  test('complete in bash: words, options, and nothing behind a whole command', () => {
    const script = completionScript(program(), 'bash');
    expect(complete(script, 'sozu-udp', 'back')).toEqual(['backend']);
    expect(complete(script, 'sozu-udp', 'backend', 'dr')).toEqual(['drain']);
    expect(complete(script, 'sozu-udp', 'listener', 'udp', 'a')).toEqual(['add', 'activate']);
    const options = complete(script, 'sozu-udp', 'backend', 'drain', '-a', '1.2.3.4:5', '--');
    expect(options).toContain('--deadline');
    expect(complete(script, 'sozu-udp', 'backend', 'drain', 'x')).toEqual([]);
  });

  test('complete in every shell by their names and options', () => {
    for (const shell of SHELLS) {
      const script = completionScript(program(), shell);
      for (const { command } of leaves(program())) {
        expect(script).toContain(command.name());
        for (const { long } of command.options) expect(script).toContain(long?.slice(2));
      }
    }
  });
});

function program(): Command {
  const command = new Command('sozu-udp');
  addControlCommands(command);
  return command;
}

function leaves(parent: Command, before = ''): { command: Command; path: string }[] {
  return parent.commands.flatMap((command) => {
    const path = `${before}${command.name()}`;
    return command.commands.length === 0 ? [{ command, path }] : leaves(command, `${path} `);
  });
}

/** What its help says behind its options. */
function exampleOf(command: Command): string {
  let text = '';
  command.configureOutput({ writeOut: (piece) => void (text += piece) });
  command.outputHelp();
  return text.slice(text.indexOf('Example:'));
}

/** What bash offers for the last of these words. */
function complete(script: string, ...words: readonly string[]): string[] {
  const list = words.map((word) => `'${word}'`).join(' ');
  const body = `${script}\nCOMP_WORDS=(${list})\nCOMP_CWORD=${words.length - 1}\n_sozu_udp\nprintf '%s\\n' "\${COMPREPLY[@]}"`;
  const answer = execFileSync('bash', ['-c', body], { encoding: 'utf8' });
  return answer.split('\n').filter((word) => word !== '');
}
