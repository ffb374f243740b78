/**
 * PROXY protocol: the header, as its reader parses it, names the true client, which is whoever the proxy's host received the
 * datagram from, and the backend (spec §4); it is there exactly when it is due. A client's datagram never comes under LOCAL,
 * which is for probes.
 */
import { formatAddress, sameAddress, toIpv6, unmap, type Address } from '../../../core/address.ts';
import { decodeDgramHeader } from '../../../core/proxy-protocol.ts';
import { always, type Property } from '../../properties.ts';
import type { Facts } from '../facts.ts';
import type { OracleKind } from '../oracle.ts';
import type { Packet } from '../packet.ts';
import { followQuestions } from '../traffic/asked.ts';
import type { Parcel } from '../traffic/parcel.ts';
import { followTraffic, type SendOutput } from '../traffic/traffic-book.ts';
import type { Verdicts } from '../verdicts.ts';

const DUE: Property<'always'> = always('a PROXY header is there exactly when it is due');
const NAMES: Property<'always'> = always('a PROXY header names the client and the backend');
const ARRIVES: Property<'always'> = always('a backend reads the true client from a PROXY header');

export const PROXY_HEADERS: OracleKind = {
  name: 'proxy-headers',
  begin: (verdicts, spec) => {
    /** What a backend hears next. */
    let delivered: Packet | undefined;
    const traffic = followTraffic(verdicts, spec, {
      sent: (parcel, output) => judgeSent(verdicts, parcel, output),
    });
    const { asked, hearings } = followQuestions(verdicts, spec, traffic);
    return {
      hearings: {
        ...hearings,
        Packet: (fate, at) => {
          hearings.Packet(fate, at);
          if (fate.kind === 'delivered') delivered = fate.packet;
        },
        BackendHeard: (heard) => {
          if (delivered?.datagram.payload !== delivered?.sent.payload) return;
          const { message, from } = heard;
          if (message === undefined || !asked.isProxy(from)) return;
          const sources = asked.of(message).map(({ src }) => src);
          verdicts.check(ARRIVES, isNamed(heard, sources), () => print(heard, sources));
        },
      },
    };
  },
};

function judgeSent(verdicts: Verdicts, { line, hasHeader }: Parcel, output: SendOutput): void {
  if (output.kind !== 'SendToBackend') return;
  const { header } = output;
  const { client, backend } = line;
  verdicts.check(DUE, (header !== undefined) === hasHeader, () => {
    return `${formatAddress(client)} has ${header === undefined ? 'none' : 'one'} at request ${line.requests}`;
  });
  if (header === undefined) return;
  const read = decodeDgramHeader(header);
  const isWhole = read.kind === 'Proxied' && read.payloadOffset === header.length;
  const mixed = client.family === 6 || backend.family === 6;
  const isTrue =
    isWhole &&
    sameAddress(read.source, written(client, mixed)) &&
    sameAddress(read.destination, written(backend, mixed));
  verdicts.check(NAMES, isTrue, () => {
    const said = read.kind === 'Proxied' ? formatAddress(read.source) : read.kind;
    return `${said} for ${formatAddress(client)}`;
  });
}

/** Where either side is IPv6, both are written so; a zone is not carried. */
function written(address: Address, asIpv6: boolean): Address {
  return asIpv6 ? { ...toIpv6(address), scope: 0 } : address;
}

/** Without a header nothing is named, and nothing is wrong but perhaps that. */
function isNamed({ header }: Facts['BackendHeard'], sources: readonly Address[]): boolean {
  if (header.kind === 'NotProxied') return true;
  if (header.kind !== 'Proxied') return false;
  const named = unmap(header.source);
  return sources.some((src) => sameAddress({ ...src, scope: 0 }, named));
}

function print({ header, backend }: Facts['BackendHeard'], sources: readonly Address[]): string {
  const said = header.kind === 'Proxied' ? formatAddress(header.source) : header.kind;
  return `backend ${backend} reads ${said} for ${sources.map(formatAddress).join(' or ')}`;
}
