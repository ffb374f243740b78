#!/usr/bin/env node
/**
 * Where the program begins. It hears signals before it loads the rest, which takes a tenth of a second: SIGUSR1 would open
 * node's debugger port, where whoever is on this machine may run code in this process, and SIGHUP would end a proxy whose file
 * was not even read.
 */
process.on('SIGUSR1', () => undefined);
if (['run', 'start'].includes(process.argv[2] ?? '')) process.on('SIGHUP', () => undefined);
const { runCommandLine } = await import('./command-line.ts');
await runCommandLine();
