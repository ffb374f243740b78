import { expect, test } from 'vitest';
import { instant, ipv4, milliseconds, type Instant } from '../../core/index.ts';
import { Observer, runScript, seededStreams, seedFromNumber } from '../../sim/index.ts';
import { LOOP } from './loop.ts';

const SPOOFED = instant(milliseconds(10));

test('one spoofed datagram between two proxies dies out, even if it has gone far', () => {
  const hops: number[] = [];
  for (let number = 0; number < 24; number++) {
    const seed = seedFromNumber(number);
    const { spec } = LOOP.plan(seededStreams(seed));
    let sent = 0;
    let latest: Instant = instant(0);
    const { violation, detail } = runScript(
      spec,
      [
        {
          at: SPOOFED,
          action: {
            kind: 'Spoof',
            host: 0,
            src: ipv4(0x64000001, 4_000 + number),
            proxy: number % 2,
            listener: 0,
            bytes: 40,
          },
        },
      ],
      seed,
      {
        observer: new Observer(),
        listen: (hub) =>
          hub.join({
            Packet: ({ kind, packet }, at) => {
              if (kind !== 'sent' || packet.kind !== 'datagram') return;
              sent += 1;
              latest = at;
            },
          }),
      },
    );
    expect(violation && detail).toBeUndefined();
    // Each proxy has 24 flows at most, and each flow forwards it once and returns at most once what came of that.
    expect(sent, `seed ${number}`).toBeLessThan(200);
    expect(latest, `seed ${number}`).toBeLessThan(SPOOFED + milliseconds(500));
    hops.push(sent);
  }
  expect(Math.max(...hops)).toBeGreaterThan(20);
});
