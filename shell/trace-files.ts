/**
 * Where traces are written: a folder with a bounded number of them, because a proxy that fails again and again must not fill
 * the disk. A file has its name when it is whole. It holds addresses of clients and the secret seeds: nobody but the owner may
 * read it (doc/TRACES.md).
 */
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { open, readdir, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';

const TRACES_MAX = 16;

/** Also of one that its writer did not come to finish, because it was killed: that takes room as well. */
const TRACE_NAME = /^sozu-udp-.*\.trace(?:\.part)?$/;

/** Writes the blocks as they come; the path. Rejects when the file cannot be written, or the folder has as many as it may. */
export async function writeTrace(
  folder: string,
  blocks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): Promise<string> {
  checkRoom(folder, await readdir(folder));
  const path = newPath(folder);
  const part = `${path}.part`;
  const file = await open(part, 'wx', 0o600);
  try {
    for await (const block of blocks) await file.writeFile(block);
    await file.sync();
    await rename(part, path);
  } catch (error) {
    await unlink(part);
    throw error;
  } finally {
    await file.close();
  }
  return path;
}

/** The same at once, for a process that is about to end. Throws where `writeTrace` rejects. */
export function writeTraceNow(folder: string, blocks: Iterable<Uint8Array>): string {
  checkRoom(folder, readdirSync(folder));
  const path = newPath(folder);
  const part = `${path}.part`;
  const file = openSync(part, 'wx', 0o600);
  try {
    for (const block of blocks) writeWhole(file, block);
    fsyncSync(file);
    renameSync(part, path);
  } catch (error) {
    unlinkSync(part);
    throw error;
  } finally {
    closeSync(file);
  }
  return path;
}

function newPath(folder: string): string {
  const at = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
  const unique = `${process.pid}-${randomBytes(4).toString('hex')}`;
  return join(folder, `sozu-udp-${at}-${unique}.trace`);
}

function checkRoom(folder: string, names: readonly string[]): void {
  const traces = names.filter((name) => TRACE_NAME.test(name)).length;
  if (traces < TRACES_MAX) return;
  throw new Error(`${folder} has ${traces} traces, and no more are written there: remove some`);
}

function writeWhole(file: number, block: Uint8Array): void {
  for (let at = 0; at < block.length;) at += writeSync(file, block, at);
}
