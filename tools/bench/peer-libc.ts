/**
 * The C library as the two ends of a bench want it.
 *
 * Client sockets on ports below the ephemeral ones: 28,232 of those serve the upstream sockets of every proxy in a bench, so
 * its clients leave them alone. The driver asks for any port; `bindingClients` gives it the next one that is free.
 *
 * Clients and servers elsewhere send datagrams one by one. `withoutOffload` has the driver do so too, by the answer of a kernel
 * that cannot cut trains.
 */
import { constants } from 'node:os';
import { ipv4, type Address } from '../../core/index.ts';
import { Arena } from '../../shell/drivers/arena.ts';
import { errnoName, SOL_UDP, type Libc } from '../../shell/drivers/libc.ts';

const FIRST_PORT = 1_024;
const EPHEMERAL_PORTS = 32_768;
const ADDRESS_BYTES = 128;

/** `libc`, except that every bind is to `source`, an IPv4 address, and a port of this side's choice. */
export function bindingClients(libc: Libc, source: Address): Libc {
  const arena = new Arena(libc, ADDRESS_BYTES);
  const at = arena.reserve(ADDRESS_BYTES);
  let port = FIRST_PORT;
  return {
    ...libc,
    bind: (fd) => {
      for (; ; port += 1) {
        const length = arena.writeAddress(at, 4, ipv4(source.a, port));
        const result = libc.bind(fd, arena.address + at, length);
        const isTaken = result < 0 && errnoName(result) === 'EADDRINUSE';
        if (isTaken && port + 1 < EPHEMERAL_PORTS) continue;
        port += 1;
        return result;
      }
    },
  };
}

/** `libc` of a kernel without UDP_SEGMENT and UDP_GRO. */
export function withoutOffload(libc: Libc): Libc {
  return {
    ...libc,
    setsockopt: (fd, level, ...rest) =>
      level === SOL_UDP ? -constants.errno.ENOPROTOOPT : libc.setsockopt(fd, level, ...rest),
  };
}
