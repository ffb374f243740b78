import { expect, test } from 'vitest';
import { seededStreams } from './random.ts';
import { seedFromNumber } from './seed.ts';
import { STREAM_NAMES } from './tape.ts';

test('the first draws of each stream never change, or every printed seed would lie', () => {
  const seeds = [
    seedFromNumber(0),
    seedFromNumber(0x5eedc0de),
    { high: 0xffffffff, low: 0xffffffff },
  ];
  const vectors = seeds.flatMap((seed) => {
    const streams = seededStreams(seed);
    return STREAM_NAMES.map((name) => {
      const words = Array.from({ length: 4 }, () => streams[name].choose('golden', 2 ** 32));
      return `${name} ${words.map((word) => word.toString(16).padStart(8, '0')).join(' ')}`;
    });
  });
  expect(vectors).toMatchInlineSnapshot(`
    [
      "config 0681b42e 31d1621c 5a34de35 d564e614",
      "workload 8d133487 a635df3c b81ac611 1ae6bff2",
      "net cac509e4 7b117a88 68ad95f1 1c0fdc00",
      "sched 3d0ab376 c5eccba2 9cc9f371 8e6db567",
      "buggify 33817360 db7fefea f14802ee 7b90419d",
      "values 1cd5bb0b 168c8f4d 8b22ceb5 22ac60bd",
      "config 8a13debc 379774a5 e82e7a8c b151385f",
      "workload 771e3e49 9b3ab987 e8decb7a 87355eed",
      "net 4682e2d8 c885fc85 6f3e3e05 a13b3936",
      "sched 10808144 4140ade2 0a6c6ca9 d8ad314d",
      "buggify 8ad8ddb4 b0ccbbe7 53646f5e 721c3cb9",
      "values edcd069e abdce011 7b279e7f 983cccd1",
      "config 60d8c62c 4ed30b6e eb36038f 0554d3af",
      "workload 6621912d b2c4369f 2ac5b070 62e147ae",
      "net 4c8321f5 af51e93f c7fc0db2 5197bf80",
      "sched 3b5c4547 c2475db0 c01dd89e 7d2270f8",
      "buggify 7c807c4b 9572df95 449b9a4a 06a21cb3",
      "values 92397f34 0d9c820d f0e0f6a7 218ca29b",
    ]
  `);
});

test('a bounded choice and a fork never change either', () => {
  const { net } = seededStreams(seedFromNumber(42));
  const link = net.fork('link');
  expect([net.choose('a', 1_000), net.choose('a', 3), link.choose('a', 1_000)])
    .toMatchInlineSnapshot(`
    [
      591,
      1,
      245,
    ]
  `);
});
