/** The runbook holds: its commands are commands, each alert has its paragraph, and the unit is one that systemd takes. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import { describe, expect, onTestFinished, test } from 'vitest';
import { addControlCommands } from '../../shell/commands/control.ts';
import { addLocalCommands } from '../../shell/commands/local.ts';
import { ALERTS } from './alerts.ts';

const root = join(import.meta.dirname, '../..');
const runbook = readFileSync(join(root, 'doc/OPERATE.md'), 'utf8');
const unit = readFileSync(join(root, 'examples/sozu-udp.service'), 'utf8');

const lines = [...commandsIn(runbook), ...commandsInUnit(unit)];

describe('the runbook', () => {
  test('has commands', () => expect(lines.length).toBeGreaterThan(20));

  test.each(lines)('may say: %s', (line) => {
    expect(parse(line)).toEqual({ ok: true });
  });

  test('would notice a command, an option or an argument that is none', () => {
    for (const line of [
      'frobnicate',
      'status --frobnicate',
      'status one',
      'check',
      'backend drain',
    ]) {
      expect(parse(`sozu-udp ${line}`)).toMatchObject({ ok: false });
    }
  });

  test('has a paragraph for each alert, and for no other', () => {
    const [, alerts = ''] = runbook.split('\n## Alerts\n');
    const paragraphs = alerts.split('\n### ').slice(1);
    expect(paragraphs.map((text) => text.split('\n')[0])).toEqual(ALERTS.map(({ name }) => name));
    for (const text of paragraphs) expect(text.length).toBeGreaterThan(200);
  });
});

describe('the unit, on any machine', () => {
  test('names the program without a folder, because npm decides where it is', () => {
    expect(commandsInUnit(unit)).toHaveLength(3);
    for (const line of commandsInUnit(unit)) expect(line).toMatch(/^sozu-udp /);
  });

  test('keeps traces in a folder that outlives the process', () => {
    const [, name] = /^StateDirectory=(.*)$/m.exec(unit) ?? [];
    expect(unit).toContain(`\nEnvironment=TMPDIR=/var/lib/${name}\n`);
  });
});

const hasAnalyze = spawnSync('systemd-analyze', ['--version']).status === 0;

describe.skipIf(!hasAnalyze)('the unit', () => {
  test('is one that systemd understands, all of it', () => {
    const { status, stdout, stderr } = spawnSync(
      'systemd-analyze',
      ['verify', '--man=no', writtenUnit()],
      { encoding: 'utf8' },
    );
    expect({ status, said: stdout + stderr }).toEqual({ status: 0, said: '' });
  });

  test('leaves the program little that it could harm', () => {
    const args = ['security', '--offline=true', '--no-pager', writtenUnit()];
    const said = execFileSync('systemd-analyze', args, { encoding: 'utf8' });
    const exposure = /exposure level .*: ([\d.]+)/.exec(said)?.[1];
    expect(Number(exposure)).toBeLessThan(2);
  });
});

/** With a program that is there, in place of ours. */
function writtenUnit(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sozu-udp-unit-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'sozu-udp.service');
  writeFileSync(file, unit.replaceAll(/^(Exec\w+=)sozu-udp /gm, `$1${process.execPath} `));
  return file;
}

/** Lines of code blocks that call the program, and the words in a table that do. */
function commandsIn(document: string): string[] {
  const blocks = [...document.matchAll(/```sh\n([^]*?)```/g)].flatMap(([, body = '']) =>
    body.split('\n'),
  );
  const inText = [...document.matchAll(/`(sozu-udp [^`]+)`/g)].map(([, words = '']) => words);
  return [...blocks, ...inText]
    .map((line) => line.replace(/^sudo /, ''))
    .filter((line) => line.startsWith('sozu-udp ') && line !== 'sozu-udp --version');
}

function commandsInUnit(text: string): string[] {
  return [...text.matchAll(/^Exec\w+=(.*)$/gm)].map(([, line = '']) => line);
}

/** Whether the program takes this line. Nothing is run. */
function parse(line: string): { ok: true } | { ok: false; error: string } {
  const program = new Command('sozu-udp');
  addLocalCommands(program);
  addControlCommands(program);
  disarm(program);
  try {
    program.parse(line.split(' ').slice(1), { from: 'user' });
    return { ok: true };
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return { ok: false, error: error.message };
  }
}

function disarm(command: Command): void {
  command.exitOverride().configureOutput({ writeErr: () => undefined, writeOut: () => undefined });
  if (command.commands.length === 0) command.action(() => undefined);
  for (const below of command.commands) disarm(below);
}
