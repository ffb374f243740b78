/**
 * DNS: dnsperf with a thousand source ports through each program to the same name server, which knows no names and answers at
 * once. With one reply a flow, every query opens and closes one.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Contender } from './contenders.ts';
import { openLanes, withPrograms, type Lane } from './lanes.ts';
import { timed, type PairedOptions } from './paired.ts';
import { scratchFolder, textOf, type Placement } from './processes.ts';
import { findProgram } from './programs.ts';
import { compareInTurns, type PairedResult } from './turns.ts';

const PORTS = 1_000;
const FIRST_PORT = 2_000;
const NAMES = 1_000;

export function measureDns(
  contenders: readonly Contender[],
  options: PairedOptions,
): Promise<PairedResult> {
  const { placement, warmUpMs, progress } = options;
  const queries = join(scratchFolder(), 'queries');
  const names = Array.from({ length: NAMES }, (_, at) => `host${at}.example.com A\n`);
  writeFileSync(queries, names.join(''));
  return withPrograms(async (launch) => {
    const lanes = await openLanes(contenders, { placement, manners: ['dns'] }, launch);
    const runners = [];
    for (const [number, lane] of lanes.entries()) {
      progress(`${lane.name}: warming up`);
      const ask = (ms: number) => dnsperf(lane, { number, ms, queries, placement });
      const { trips } = await ask(warmUpMs);
      if (trips === 0) throw new Error(`no answer came back through ${lane.name}`);
      const run = (ms: number) => timed({ ...lane, load: undefined }, () => ask(ms));
      runners.push({ name: lane.name, run });
    }
    return compareInTurns('1000 source ports', runners, options);
  });
}

interface Asked {
  readonly number: number;
  readonly ms: number;
  readonly queries: string;
  readonly placement: Placement;
}

async function dnsperf(
  { port }: Lane,
  { number, ms, queries, placement }: Asked,
): Promise<{ trips: number; lost: number }> {
  const path = findProgram('dnsperf') ?? 'dnsperf';
  const from = `-a 127.0.1.${number + 1} -x ${FIRST_PORT} -c ${PORTS} -q ${PORTS}`;
  const words = `-s 127.0.0.1 -p ${port} ${from} -T 1 -t 1 -l ${ms / 1_000} -d`.split(' ');
  const text = await textOf([path, ...words, queries], placement.peers);
  const figure = (name: string): number =>
    Number(new RegExp(`${name}:\\s+(\\d+)`).exec(text)?.[1] ?? Number.NaN);
  return { trips: figure('Queries completed'), lost: figure('Queries lost') };
}
