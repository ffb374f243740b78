/** Sockets of this machine: who has the addresses already, what was dropped, and whether IPv6 is there at all. */
import { formatAddress, formatIp } from '../../core/index.ts';
import { listenersOf, type Finding, type Patient } from './finding.ts';
import { numberIn, type Machine } from './machine.ts';
import { collide, openSockets, snmpCounter, type OpenSocket } from './proc-net.ts';

const IPV6 = '/proc/sys/net/ipv6';

/** Listeners on IPv6 addresses need it, and one on `::` is to hear IPv4 too. */
export function checkIpv6(patient: Patient): Finding[] {
  const { machine } = patient;
  const listeners = listenersOf(patient).filter(({ address }) => address.family === 6);
  const [first] = listeners;
  if (first === undefined || machine.read('/proc/net/snmp') === undefined) return [];
  const isOff =
    machine.read('/proc/net/if_inet6') === undefined ||
    numberIn(machine, `${IPV6}/conf/all/disable_ipv6`) === 1;
  if (isOff) {
    return [
      {
        severity: 'error',
        check: 'ipv6',
        what: `IPv6 is off, and ${formatAddress(first.address)} is to be listened on`,
        why: 'the listener cannot open',
        fix: 'sysctl -w net.ipv6.conf.all.disable_ipv6=0   # or write an IPv4 address',
      },
    ];
  }
  const dual = listeners.find((one) => formatIp(one.address) === '::' && !one.ipv6Only);
  if (dual === undefined || numberIn(machine, `${IPV6}/bindv6only`) !== 1) return [];
  return [
    {
      severity: 'warning',
      check: 'ipv6',
      what: `${formatAddress(dual.address)} hears no IPv4 on this machine (net.ipv6.bindv6only)`,
      why: 'clients on IPv4 get no answer',
      fix: 'sysctl -w net.ipv6.bindv6only=0   # or add a listener on 0.0.0.0',
    },
  ];
}

/** Another program on a listener's address. While a proxy runs, it may be that one. */
export function checkAddresses(patient: Patient): Finding[] {
  const { machine, isRunning } = patient;
  if (isRunning) return [];
  const open = allOpen(machine);
  return listenersOf(patient).flatMap(({ address }): Finding[] => {
    const other = open.find((socket) => collide(socket.address, address));
    if (other === undefined) return [];
    return [
      {
        severity: 'error',
        check: 'addresses',
        what: `${formatAddress(address)} is taken: a socket is open on ${formatAddress(other.address)}`,
        why: 'the listener cannot open (EADDRINUSE)',
        fix: `ss -ulpn 'sport = :${address.port}'   # names the program`,
      },
    ];
  });
}

/** What the kernel dropped: of sockets on the listeners' addresses since they opened, of the machine since its start. */
export function checkDrops(patient: Patient): Finding[] {
  const { machine } = patient;
  const listeners = listenersOf(patient);
  const ours = allOpen(machine).filter(
    ({ address, drops }) => drops > 0 && listeners.some((one) => collide(one.address, address)),
  );
  const all = snmpCounter(machine.read('/proc/net/snmp') ?? '', 'Udp', 'RcvbufErrors') ?? 0;
  return [
    ...ours.map(({ address, drops }): Finding => ({
      severity: 'warning',
      check: 'drops',
      what: `the kernel dropped ${drops} datagrams at ${formatAddress(address)} since that socket opened`,
      why: 'its receive buffer was full: bursts do not fit, or the process is overloaded',
      fix: `ss -uanm 'sport = :${address.port}'   # shows the buffer; raise rcvbuf and net.core.rmem_max`,
    })),
    ...(all === 0 ? [] : [machineDrops(all)]),
  ];
}

function machineDrops(count: number): Finding {
  return {
    severity: 'notice',
    check: 'drops',
    what: `the kernel dropped ${count} datagrams of this machine for want of room since it started`,
    why: 'of all programs together: it matters if the number grows',
    fix: 'nstat -az UdpRcvbufErrors   # a second time shows whether it does',
  };
}

/** What was left of a proxy, or belongs to another user. */
export async function checkControlSocket({ machine, socket }: Patient): Promise<Finding[]> {
  if (socket === undefined) return [];
  const answer = await machine.askSocket(socket);
  if (answer === 'stale') {
    return [
      {
        severity: 'warning',
        check: 'control-socket',
        what: `nobody listens at ${socket}`,
        why: 'the proxy that made it ended without closing it; the next one replaces it',
        fix: `rm '${socket}'`,
      },
    ];
  }
  if (answer !== 'denied') return [];
  return [
    {
      severity: 'warning',
      check: 'control-socket',
      what: `${socket} is not yours to use`,
      why: 'the commands that ask a running proxy are refused',
      fix: `stat '${socket}'   # names its user`,
    },
  ];
}

function allOpen(machine: Machine): OpenSocket[] {
  return ['/proc/net/udp', '/proc/net/udp6'].flatMap((file) =>
    openSockets(machine.read(file) ?? ''),
  );
}
