/** What of a world goes into the digest of its run: every packet's fate, every change of a proxy's mind, every answer heard. */
import type { Digest } from '../digest.ts';
import type { Hearings } from './facts.ts';

/** More than there are processes in a world. */
const PROCESSES = 4_096;

export function digestFacts(digest: Digest): Hearings {
  return {
    Packet: ({ kind, packet }, at) => {
      const { datagram } = packet;
      digest.number(at).string(kind).number(packet.serial).number(datagram.src.a);
      digest.number(datagram.src.port).number(datagram.dst.a).number(datagram.dst.port);
      digest.number(datagram.payload.length);
    },
    DataOutput: ({ process, plane, output }) =>
      digest.number(process + plane * PROCESSES).string(output.kind),
    ControlOutput: ({ process, output }, at) =>
      digest.number(process).number(at).string(output.kind),
    ClientHeard: ({ client, message }) => digest.number(client).number(message?.serial ?? -1),
    BackendHeard: ({ backend, message }) => digest.number(backend).number(message?.serial ?? -1),
  };
}
