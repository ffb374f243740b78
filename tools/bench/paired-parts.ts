/** The parts that compare programs under one load after the other, in turns. */
import { resolve } from 'node:path';
import { pairedFigures } from './bars.ts';
import {
  CONTROL,
  LIMITED,
  MMSG,
  MMSG_UNRECORDED,
  PRODUCT,
  productOf,
  RECORDED,
  UNRECORDED,
  UNRECORDED_AGAIN,
  YARDSTICK,
  absentOf,
  type Contender,
} from './contenders.ts';
import { floor } from './floors.ts';
import { BURSTS, LARGE_DATAGRAMS, loadName, MANY_FLOWS, SMALL_LOADS, type Load } from './loads.ts';
import { measurePaired, type PairedResult } from './paired.ts';
import type { Context, Options, Outcome, Part } from './part.ts';
import { nginx, sozu } from './programs.ts';
import { absentReport, pairedReport } from './report.ts';

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
  { placement, progress, print, options }: Context,
  matches: readonly Match[],
): Promise<Outcome> {
  const absent = absentOf(matches.flatMap(({ contenders }) => contenders));
  for (const { name, why } of absent) progress(`${name} is left out: ${why}`);
  const results: PairedResult[] = [];
  for (const { load, contenders } of matches) {
    const present = contenders.filter((one) => !absent.some(({ name }) => name === one.name));
    if (present.length < 2) continue;
    const result = await measurePaired(present, load, {
      slices: options.slices,
      sliceMs: SLICE_MS,
      warmUpMs: WARM_UP_MS,
      placement,
      progress: (text) => progress(`${loadName(load)}: ${text}`),
    });
    results.push(result);
    print(['', ...pairedReport(result)]);
  }
  if (absent.length > 0) print(['', ...absentReport(absent)]);
  return {
    figures: results.flatMap((result) => pairedFigures(result, part)),
    data: { results, absent },
  };
}
