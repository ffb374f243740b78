import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { needPeers, skip } from '../../test/e2e/peers.ts';
import {
  AF_INET,
  AF_INET6,
  SOCK_DGRAM,
  SOCK_NONBLOCK,
  SOCK_CLOEXEC,
  SOL_SOCKET,
  SO_SNDBUF,
  SO_RCVBUF,
  SO_REUSEPORT,
  SO_ATTACH_REUSEPORT_CBPF,
  IPPROTO_IP,
  IP_PKTINFO,
  IPPROTO_IPV6,
  IPV6_V6ONLY,
  IPV6_RECVPKTINFO,
  IPV6_PKTINFO,
  SOL_UDP,
  UDP_SEGMENT,
  UDP_GRO,
  SO_RXQ_OVFL,
  EPOLLIN,
  EPOLLOUT,
  EPOLL_CTL_ADD,
  EPOLL_CTL_MOD,
} from './libc.ts';
import {
  CMSGHDR,
  IN6_PKTINFO,
  IN_PKTINFO,
  IOVEC,
  layoutFor,
  MMSGHDR,
  POLLFD,
  RECEIVE_CONTROL_BYTES,
  SOCK_FILTER,
  SOCK_FPROG,
  SOCKADDR_IN,
  SOCKADDR_IN6,
} from './libc-layout.ts';

/** `offset` of each field, then the size, in the words of C and of libc-ts. */
const STRUCTS: readonly [string, readonly string[], Readonly<Record<string, number>>][] = [
  [
    'struct mmsghdr',
    [
      'msg_hdr.msg_name name',
      'msg_hdr.msg_namelen nameLength',
      'msg_hdr.msg_iov vectors',
      'msg_hdr.msg_iovlen vectorCount',
      'msg_hdr.msg_control control',
      'msg_hdr.msg_controllen controlLength',
      'msg_hdr.msg_flags flags',
      'msg_len length',
    ],
    MMSGHDR,
  ],
  ['struct iovec', ['iov_base base', 'iov_len length'], IOVEC],
  ['struct sockaddr_in', ['sin_family family', 'sin_port port', 'sin_addr address'], SOCKADDR_IN],
  [
    'struct sockaddr_in6',
    [
      'sin6_family family',
      'sin6_port port',
      'sin6_flowinfo flowInfo',
      'sin6_addr address',
      'sin6_scope_id scope',
    ],
    SOCKADDR_IN6,
  ],
  [
    'struct in_pktinfo',
    ['ipi_ifindex interface', 'ipi_spec_dst source', 'ipi_addr destination'],
    IN_PKTINFO,
  ],
  ['struct in6_pktinfo', ['ipi6_addr address', 'ipi6_ifindex interface'], IN6_PKTINFO],
  ['struct pollfd', ['fd fd', 'events events', 'revents returned'], POLLFD],
  ['struct sock_filter', ['code code', 'jt ifTrue', 'jf ifFalse', 'k constant'], SOCK_FILTER],
  ['struct sock_fprog', ['len length', 'filter filter'], SOCK_FPROG],
];

const CONSTANTS = {
  AF_INET,
  AF_INET6,
  SOCK_DGRAM,
  SOCK_NONBLOCK,
  SOCK_CLOEXEC,
  SOL_SOCKET,
  SO_SNDBUF,
  SO_RCVBUF,
  SO_REUSEPORT,
  SO_ATTACH_REUSEPORT_CBPF,
  IPPROTO_IP,
  IP_PKTINFO,
  IPPROTO_IPV6,
  IPV6_V6ONLY,
  IPV6_RECVPKTINFO,
  IPV6_PKTINFO,
  SOL_UDP,
  UDP_SEGMENT,
  UDP_GRO,
  SO_RXQ_OVFL,
  EPOLLIN,
  EPOLLOUT,
  EPOLL_CTL_ADD,
  EPOLL_CTL_MOD,
};

test('knows every struct and constant as the C compiler of this machine does', (context) => {
  const here = layoutFor(process.arch);
  if (process.platform !== 'linux' || here === undefined) return skip(context, 'not for this one');
  needPeers(context, 'gcc');
  const { size, length, level, type, data } = CMSGHDR;
  const expected: Record<string, number> = {
    'cmsghdr.size': size,
    'cmsghdr.length': length,
    'cmsghdr.level': level,
    'cmsghdr.type': type,
    'cmsghdr.data': data,
    control: RECEIVE_CONTROL_BYTES,
    'struct epoll_event.size': here.epollEvent.size,
    'struct epoll_event.events': here.epollEvent.events,
    'struct epoll_event.data': here.epollEvent.data,
  };
  for (const [name, , fields] of STRUCTS) {
    for (const [field, at] of Object.entries(fields)) expected[`${name}.${field}`] = at;
  }
  Object.assign(expected, CONSTANTS);
  return expect(compiled()).toEqual(expected);
});

test('knows that arm64 does not pack its events, and no other processor', () => {
  expect(layoutFor('arm64')?.epollEvent).toEqual({ size: 16, events: 0, data: 8 });
  expect(layoutFor('x64')?.epollEvent).toEqual({ size: 12, events: 0, data: 4 });
  expect(layoutFor('s390x')).toBeUndefined();
});

/** What a C program says of the same structs. */
function compiled(): Record<string, number> {
  const line = (name: string, value: string): string => `say("${name}", (long) (${value}));`;
  const of = (struct: string, field: string, name: string): string =>
    line(`${struct}.${name}`, `offsetof(${struct}, ${field})`);
  const source = `#define _GNU_SOURCE
    #include <stddef.h>
    #include <stdio.h>
    #include <poll.h>
    #include <linux/filter.h>
    #include <netinet/in.h>
    #include <netinet/udp.h>
    #include <sys/epoll.h>
    #include <sys/socket.h>
    #include <sys/uio.h>
    static char separator = '{';
    static void say(const char *name, long value) {
      printf("%c\\"%s\\":%ld", separator, name, value);
      separator = ',';
    }
    int main(void) {
      struct cmsghdr *none = 0;
      ${STRUCTS.flatMap(([name, fields]) => [
        line(`${name}.size`, `sizeof(${name})`),
        ...fields.map((field) => of(name, field.split(' ')[0] ?? '', field.split(' ')[1] ?? '')),
      ]).join('\n')}
      ${line('cmsghdr.size', 'sizeof(struct cmsghdr)')}
      ${line('cmsghdr.length', 'offsetof(struct cmsghdr, cmsg_len)')}
      ${line('cmsghdr.level', 'offsetof(struct cmsghdr, cmsg_level)')}
      ${line('cmsghdr.type', 'offsetof(struct cmsghdr, cmsg_type)')}
      ${line('cmsghdr.data', '(char *) CMSG_DATA(none) - (char *) none')}
      ${line('control', 'CMSG_SPACE(sizeof(struct in6_pktinfo)) + 2 * CMSG_SPACE(sizeof(int))')}
      ${line('struct epoll_event.size', 'sizeof(struct epoll_event)')}
      ${of('struct epoll_event', 'events', 'events')}
      ${of('struct epoll_event', 'data', 'data')}
      ${Object.keys(CONSTANTS)
        .map((name) => line(name, name))
        .join('\n')}
      puts("}");
    }`;
  const folder = mkdtempSync(join(tmpdir(), 'layout-'));
  try {
    writeFileSync(join(folder, 'layout.c'), source);
    execFileSync('gcc', ['-o', join(folder, 'layout'), join(folder, 'layout.c')]);
    return JSON.parse(execFileSync(join(folder, 'layout'), { encoding: 'utf8' }));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
