/**
 * No reply reaches another client than the one who asked, and it comes from the address that was asked. Judged by what a proxy
 * got and what it sent: a network may carry either elsewhere, and a NAT may have given the client's port to another.
 */
import { formatAddress, sameAddress, sameIp, type Address } from '../../../core/address.ts';
import { always, type Property } from '../../properties.ts';
import { readMessage } from '../message.ts';
import type { OracleKind } from '../oracle.ts';
import type { PacketFate } from '../packet.ts';
import { followQuestions, type Asked } from '../traffic/asked.ts';
import { followTraffic } from '../traffic/traffic-book.ts';
import type { WorldSpec } from '../spec.ts';
import type { Verdicts } from '../verdicts.ts';

const ANSWERS: Property<'always'> = always('an answer leaves for the client who asked for it');
const FLOW: Property<'always'> = always('what comes back on a flow leaves for its client');

export const REPLIES: OracleKind = {
  name: 'replies',
  begin: (verdicts, spec) => {
    const traffic = followTraffic(verdicts, spec, {
      sent: ({ line, toBackend }, output) => {
        if (toBackend || output.kind !== 'SendToClient') return;
        const { client, local } = line;
        const isHis = sameAddress(output.dst, client) && isSame(output.from, local);
        verdicts.check(FLOW, isHis, () => {
          return `${formatAddress(output.dst)} is answered in place of ${formatAddress(client)}`;
        });
      },
      astray: (output, why) => {
        verdicts.check(FLOW, output.kind === 'SendToBackend' || why !== 'line', () => {
          return 'a reply belongs to no flow of its listener';
        });
      },
    });
    const { asked, hearings } = followQuestions(verdicts, spec, traffic);
    return {
      hearings: {
        ...hearings,
        Packet: (fate, at) => {
          hearings.Packet(fate, at);
          judgePacket(verdicts, spec, asked, fate);
        },
      },
    };
  },
};

function judgePacket(
  verdicts: Verdicts,
  spec: WorldSpec,
  asked: Asked,
  { kind, packet }: PacketFate,
): void {
  if (kind !== 'sent' || packet.raw || packet.kind !== 'datagram') return;
  const { src, dst, payload } = packet.datagram;
  if (!asked.isProxy(src)) return;
  const message = readMessage(payload);
  if (message?.kind !== 'answer' || asked.isStray(message)) return;
  const questions = asked.of(message);
  const isHis = questions.some(
    (question) => sameAddress(question.src, dst) && isFrom(spec, question.dst, src),
  );
  verdicts.check(ANSWERS, isHis, () => {
    const who = questions.map((one) => `${formatAddress(one.src)} at ${formatAddress(one.dst)}`);
    return `${formatAddress(src)} answers ${formatAddress(dst)}; asked had ${who.join(', ')}`;
  });
}

/** Where a driver cannot tell which address was asked, any of its machine's may answer. */
function isFrom({ proxies }: WorldSpec, wanted: Address, src: Address): boolean {
  if (sameAddress(wanted, src)) return true;
  if (wanted.port !== src.port) return false;
  return proxies.some(({ shape }) => {
    const isHere = (address: Address): boolean =>
      shape.addresses.some((one) => sameIp(one, address));
    return shape.localAddress === false && isHere(wanted) && isHere(src);
  });
}

function isSame(one: Address | undefined, other: Address | undefined): boolean {
  return one === undefined || other === undefined ? one === other : sameAddress(one, other);
}
