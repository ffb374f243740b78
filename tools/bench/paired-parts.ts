/** The parts that compare programs under one load after the other, in turns. */
import { resolve } from 'node:path';
import { latencyFigures, pairedFigures, workersFigures } from './bars.ts';
import {
  CONTROL,
  DNS_MANY,
  DNS_ONE,
  LIMITED,
  MMSG,
  MMSG_UNRECORDED,
  PRODUCT,
  productOf,
  RECORDED,
  UNRECORDED,
  UNRECORDED_AGAIN,
  YARDSTICK,
  type Contender,
} from './contenders.ts';
import { measureDns } from './dns.ts';
import { floor } from './floors.ts';
import { BURSTS, LARGE_DATAGRAMS, loadName, MANY_FLOWS, SMALL_LOADS, type Load } from './loads.ts';
import { measureLatency } from './latency.ts';
import { measurePaired, type PairedOptions } from './paired.ts';
import { absentOf, presentOf } from './presence.ts';
import type { PairedResult } from './turns.ts';
import type { Context, Options, Outcome, Part } from './part.ts';
import { DNSDIST, DNSPERF, findProgram, nginx, sozu } from './programs.ts';
import { absentReport, latencyReport, pairedReport, workersReport } from './report.ts';
import { measureWorkers } from './workers.ts';

/** Who meets whom under which load. */
interface Match {
  readonly load: Load;
  readonly contenders: readonly Contender[];
}

const SLICE_MS = 500;
const WARM_UP_MS = 2_000;

export const PAIRED_PARTS: readonly Part[] = [
  {
    name: 'dgram',
    meaning: 'the node:dgram driver against the least that a forwarder over node:dgram can be',
    inAll: true,
    run: (context) => runMatches('dgram', context, against([YARDSTICK, PRODUCT, CONTROL])),
  },
  {
    name: 'mmsg',
    meaning: 'the mmsg driver against the C floors, nginx and Sōzu',
    inAll: true,
    run: (context) => runMatches('mmsg', context, mmsgMatches(context.options)),
  },
  {
    name: 'latency',
    meaning:
      'what nginx and the mmsg driver add to a round trip, at one rate and 10,000 live flows',
    inAll: true,
    run: runLatency,
  },
  {
    name: 'workers',
    meaning: 'two workers against one, at a rate that one sustains',
    inAll: true,
    run: runWorkers,
  },
  {
    name: 'dns',
    meaning: 'dnsperf with a thousand source ports, against nginx and dnsdist',
    inAll: true,
    run: runDns,
  },
  {
    name: 'cost',
    meaning: 'what was built since an earlier checkout costs a datagram (needs --against)',
    inAll: false,
    run: (context) => runMatches('cost', context, against(costContenders(context.options))),
  },
  {
    name: 'recorder',
    meaning: 'what the flight recorder costs a datagram: off, on, and off once more as the control',
    inAll: false,
    run: (context) =>
      runMatches('recorder', context, against([UNRECORDED, RECORDED, UNRECORDED_AGAIN])),
  },
];

function against(contenders: readonly Contender[]): Match[] {
  return SMALL_LOADS.map((load) => ({ load, contenders }));
}

/** The earlier build against today's, without and with limits; and against itself. */
function costContenders({ against: folder }: Options): Contender[] {
  if (folder === undefined) throw new Error('cost needs --against FOLDER: a built checkout');
  const root = resolve(folder);
  return [productOf('earlier', root), PRODUCT, LIMITED, productOf('control', root)];
}

/** Ten thousand flows of a proxy take as many of the 28,232 ephemeral ports, so there two of them meet at a time. */
function mmsgMatches(options: Options): Match[] {
  const lowest = floor('floor-gso', options.floor);
  const control = floor('floor-gso', options.floor, { name: 'control' });
  const trains = floor('floor-gso', options.floor, { name: 'floor-gso gro', words: ['gro'] });
  const others = [nginx(), ...(options.sozu === undefined ? [] : [sozu(options.sozu)])];
  const plain = floor('floor', options.floor);
  const all = [lowest, plain, ...others, MMSG, MMSG_UNRECORDED, PRODUCT, control];
  const pairs = [
    ...[lowest, ...others].flatMap((other) => [MMSG, MMSG_UNRECORDED].map((own) => [other, own])),
    [lowest, control],
  ];
  return [
    ...[...SMALL_LOADS, LARGE_DATAGRAMS].map((load) => ({ load, contenders: all })),
    ...pairs.map((contenders) => ({ load: MANY_FLOWS, contenders })),
    { load: BURSTS, contenders: [trains, MMSG, MMSG_UNRECORDED] },
  ];
}

async function runMatches(
  part: string,
  context: Context,
  matches: readonly Match[],
): Promise<Outcome> {
  const { progress, print } = context;
  const absent = absentOf(
    matches.flatMap(({ contenders }) => contenders),
    progress,
  );
  const results: PairedResult[] = [];
  for (const { load, contenders } of matches) {
    const present = presentOf(contenders, absent);
    if (present.length < 2) continue;
    const options = pairedOptions(context, `${loadName(load)}: `);
    const result = await measurePaired(present, load, options);
    results.push(result);
    print(['', ...pairedReport(result)]);
  }
  print(absentReport(absent));
  return {
    figures: results.flatMap((result) => pairedFigures(result, part)),
    results,
    data: { absent },
  };
}

async function runLatency(context: Context): Promise<Outcome> {
  const { progress, print } = context;
  const contenders = [nginx(), MMSG];
  const absent = absentOf(contenders, progress);
  print(absentReport(absent));
  // Without nginx there is nobody to give the rate.
  if (absent.length > 0) return { figures: [], data: { absent } };
  const result = await measureLatency(contenders, pairedOptions(context));
  print(['', ...latencyReport(result)]);
  return { figures: latencyFigures(result), data: { result, absent } };
}

async function runWorkers(context: Context): Promise<Outcome> {
  const absent = absentOf([MMSG], context.progress);
  context.print(absentReport(absent));
  if (absent.length > 0) return { figures: [], data: { absent } };
  const result = await measureWorkers(pairedOptions(context));
  context.print(['', ...workersReport(result)]);
  return { figures: workersFigures(result), data: result };
}

async function runDns(context: Context): Promise<Outcome> {
  const { progress, print } = context;
  const contenders = [nginx({ responses: 1, idle: 5 }), DNSDIST, DNS_ONE, DNS_MANY];
  const absent = [...absentOf(contenders, progress), ...absentOf([DNSPERF], progress)];
  print(absentReport(absent));
  const present = presentOf(contenders, absent);
  const isPossible = findProgram('dnsperf') !== undefined && present.length > 1;
  if (!isPossible) return { figures: [], data: { absent } };
  const result = await measureDns(present, pairedOptions(context));
  print(['', ...pairedReport(result)]);
  return { figures: pairedFigures(result, 'dns'), results: [result], data: { absent } };
}

function pairedOptions({ options, placement, progress }: Context, prefix = ''): PairedOptions {
  return {
    slices: options.slices,
    sliceMs: SLICE_MS,
    warmUpMs: WARM_UP_MS,
    placement,
    progress: (text) => progress(prefix + text),
  };
}
