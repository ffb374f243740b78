/**
 * Memory that JavaScript and the kernel look into together: one ArrayBuffer, whose place never changes, parcelled out once.
 * What it hands out are offsets; the kernel is given `address + offset`. Both processors it runs on are little-endian.
 */
import { ipv4, ipv6, isMapped, unmap, type Address } from '../../core/index.ts';
import { CMSGHDR, IN6_PKTINFO, IN_PKTINFO, SOCKADDR_IN, SOCKADDR_IN6 } from './libc-layout.ts';
import {
  AF_INET,
  AF_INET6,
  IP_PKTINFO,
  IPPROTO_IP,
  IPPROTO_IPV6,
  IPV6_PKTINFO,
  SOL_UDP,
  UDP_SEGMENT,
  type Libc,
} from './libc.ts';

/** Everything begins where a cache line does. */
const LINE = 64;

export class Arena {
  readonly buffer: ArrayBuffer;
  readonly address: number;
  readonly bytes: Uint8Array;
  /** What is lent right now, and where it lies. To ask any other array where its bytes are costs more than to copy a few. */
  lent: Uint8Array | undefined;
  lentAt = 0;
  private readonly view: DataView;
  private readonly words: Int32Array;
  private used = 0;

  constructor(libc: Pick<Libc, 'addressOf'>, size: number) {
    this.buffer = new ArrayBuffer(size);
    this.address = libc.addressOf(this.buffer);
    this.bytes = new Uint8Array(this.buffer);
    this.view = new DataView(this.buffer);
    this.words = new Int32Array(this.buffer);
  }

  /** The offset of `size` bytes that nobody else was given; the arena was made large enough. */
  reserve(size: number): number {
    const offset = this.used;
    this.used += Math.ceil(size / LINE) * LINE;
    if (this.used > this.buffer.byteLength) throw new Error('the arena is too small');
    return offset;
  }

  /** Where four divides `at`, here and below. */
  getInt32(at: number): number {
    return this.words[at >> 2] ?? 0;
  }

  setInt32(at: number, value: number): void {
    this.words[at >> 2] = value;
  }

  /** A pointer or a `size_t`, in two halves: a bigint would be made for each. */
  setWord(at: number, value: number): void {
    this.words[at >> 2] = value | 0;
    this.words[(at >> 2) + 1] = value / 0x1_0000_0000;
  }

  /** Writes `address` as a socket of `family` wants it, IPv4 in mapped form for IPv6; the length of the struct. */
  writeAddress(at: number, family: 4 | 6, address: Address): number {
    const { view } = this;
    if (family === 4) {
      const { a, port } = unmapped(address);
      view.setUint16(at + SOCKADDR_IN.family, AF_INET, true);
      view.setUint16(at + SOCKADDR_IN.port, port);
      view.setInt32(at + SOCKADDR_IN.address, a);
      return SOCKADDR_IN.size;
    }
    view.setUint16(at + SOCKADDR_IN6.family, AF_INET6, true);
    view.setUint16(at + SOCKADDR_IN6.port, address.port);
    view.setUint32(at + SOCKADDR_IN6.flowInfo, 0);
    this.writeIpv6(at + SOCKADDR_IN6.address, address);
    view.setUint32(at + SOCKADDR_IN6.scope, address.scope, true);
    return SOCKADDR_IN6.size;
  }

  /** An address that the kernel wrote, unmapped. `last` is returned if it is the same: neighbours often are. */
  readAddress(at: number, last: Address | undefined): Address {
    const { view } = this;
    if (view.getUint16(at + SOCKADDR_IN.family, true) === AF_INET) {
      return this.ipv4At(at + SOCKADDR_IN.address, view.getUint16(at + SOCKADDR_IN.port), last);
    }
    const port = view.getUint16(at + SOCKADDR_IN6.port);
    const scope = view.getUint32(at + SOCKADDR_IN6.scope, true);
    return this.ipv6At(at + SOCKADDR_IN6.address, port, scope, last);
  }

  /** Writes the control message that makes a datagram leave from `from`; its length with the padding behind it. */
  writeSource(at: number, family: 4 | 6, from: Address): number {
    const data = at + CMSGHDR.data;
    this.view.setInt32(at + CMSGHDR.level, family === 4 ? IPPROTO_IP : IPPROTO_IPV6, true);
    this.view.setInt32(at + CMSGHDR.type, family === 4 ? IP_PKTINFO : IPV6_PKTINFO, true);
    const size = family === 4 ? IN_PKTINFO.size : IN6_PKTINFO.size;
    this.setWord(at + CMSGHDR.length, CMSGHDR.data + size);
    if (family === 4) {
      this.view.setInt32(data + IN_PKTINFO.interface, 0);
      this.view.setInt32(data + IN_PKTINFO.source, unmapped(from).a);
      this.view.setInt32(data + IN_PKTINFO.destination, 0);
    } else {
      this.writeIpv6(data + IN6_PKTINFO.address, from);
      this.view.setUint32(data + IN6_PKTINFO.interface, from.scope, true);
    }
    return Math.ceil((CMSGHDR.data + size) / 8) * 8;
  }

  /** Writes the control message that has a send cut into segments of so many bytes; its length with the padding behind it. */
  writeSegment(at: number, bytes: number): number {
    this.setWord(at + CMSGHDR.length, CMSGHDR.data + 2);
    this.setInt32(at + CMSGHDR.level, SOL_UDP);
    this.setInt32(at + CMSGHDR.type, UDP_SEGMENT);
    this.view.setUint16(at + CMSGHDR.data, bytes, true);
    return CMSGHDR.data + 8;
  }

  /** The local address in the control message that the kernel wrote at `at`. */
  readLocal(at: number, port: number, last: Address | undefined): Address {
    const data = at + CMSGHDR.data;
    if (this.getInt32(at + CMSGHDR.level) === IPPROTO_IP) {
      return this.ipv4At(data + IN_PKTINFO.destination, port, last);
    }
    const isLinkLocal = this.view.getUint16(data + IN6_PKTINFO.address) >>> 6 === 0x3fa;
    const scope = isLinkLocal ? this.view.getUint32(data + IN6_PKTINFO.interface, true) : 0;
    return this.ipv6At(data + IN6_PKTINFO.address, port, scope, last);
  }

  private writeIpv6(at: number, address: Address): void {
    const { view } = this;
    const isOld = address.family === 4;
    view.setInt32(at, isOld ? 0 : address.a);
    view.setInt32(at + 4, isOld ? 0 : address.b);
    view.setInt32(at + 8, isOld ? 0xffff : address.c);
    view.setInt32(at + 12, isOld ? address.a : address.d);
  }

  private ipv4At(at: number, port: number, last: Address | undefined): Address {
    const a = this.view.getInt32(at);
    const isLast = last?.family === 4 && last.a === a && last.port === port;
    return isLast ? last : ipv4(a, port);
  }

  private ipv6At(at: number, port: number, scope: number, last: Address | undefined): Address {
    const { view } = this;
    const c = view.getInt32(at + 8);
    if (c === 0xffff && view.getInt32(at) === 0 && view.getInt32(at + 4) === 0) {
      return this.ipv4At(at + 12, port, last);
    }
    const [a, b, d] = [view.getInt32(at), view.getInt32(at + 4), view.getInt32(at + 12)];
    const isLast =
      last?.family === 6 &&
      last.a === a &&
      last.b === b &&
      last.c === c &&
      last.d === d &&
      last.port === port &&
      last.scope === scope;
    return isLast ? last : ipv6([a, b, c, d], port, scope);
  }
}

function unmapped(address: Address): Address {
  return isMapped(address) ? unmap(address) : address;
}
