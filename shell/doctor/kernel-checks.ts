/** What the kernel of this machine grants, against what the configuration wants. */
import { LIMITS } from '../../core/index.ts';
import { listenersOf, type Finding, type Patient } from './finding.ts';
import { numberIn, type Machine } from './machine.ts';

/** Descriptors beside those of flows: 256 probes, the listeners, control connections, files. */
const DESCRIPTORS_BESIDE = 512;

/** RLIMIT_NOFILE: each live flow holds a descriptor. */
export function checkDescriptors(patient: Patient): Finding[] {
  const { machine, flows } = patient;
  const limits = /^Max open files\s+(\d+)\s+(\d+)/m.exec(machine.read('/proc/self/limits') ?? '');
  const [soft, hard] = [limits?.[1], limits?.[2]].map(Number);
  if (soft === undefined || hard === undefined || Number.isNaN(soft)) return [];
  const needed = flows + DESCRIPTORS_BESIDE;
  if (needed <= soft) return [];
  const most = numberIn(machine, '/proc/sys/fs/nr_open') ?? Infinity;
  const raise = needed > most ? `sysctl -w fs.nr_open=${needed} && ` : '';
  const here = needed <= hard ? `ulimit -n ${needed}` : 'systemctl edit sozu-udp';
  return [
    {
      severity: 'warning',
      check: 'descriptors',
      what: `${flows} flows and what is beside them need ${needed} descriptors; a process has ${soft} (at most ${hard})`,
      why: 'each live flow holds one: without, new flows are shed',
      fix: `${raise}${here}   # under systemd: LimitNOFILE=${needed}`,
    },
  ];
}

const PORT_RANGE = '/proc/sys/net/ipv4/ip_local_port_range';

/** The whole range that no service is likely to listen in. */
const PORTS_WIDEST = { first: 1_024, last: 65_535 };

/** Each live flow holds a local port too, unless its cluster spreads them over addresses. */
export function checkPorts(patient: Patient): Finding[] {
  const range = /^\s*(\d+)\s+(\d+)/.exec(patient.machine.read(PORT_RANGE) ?? '');
  if (range === null) return [];
  const [first, last] = [Number(range[1]), Number(range[2])];
  return [...checkPortCount(patient, first, last), ...checkReserved(patient, first, last)];
}

function checkPortCount({ flows, config }: Patient, first: number, last: number): Finding[] {
  const sources = config?.clusters.map(({ upstreamSources }) => upstreamSources.length) ?? [];
  const addresses = Math.max(1, ...sources);
  const ports = (last - first + 1) * addresses;
  if (flows <= ports) return [];
  const widest = PORTS_WIDEST.last - PORTS_WIDEST.first + 1;
  const widen = flows <= widest * addresses;
  return [
    {
      severity: 'warning',
      check: 'ports',
      what: `${flows} flows are more than the ${ports} local ports (${first} to ${last}, ${addresses} address${addresses === 1 ? '' : 'es'})`,
      why: 'a flow without a port is refused (port_exhausted)',
      fix: widen
        ? `sysctl -w net.ipv4.ip_local_port_range="${PORTS_WIDEST.first} ${PORTS_WIDEST.last}"`
        : `write upstream_source with ${Math.ceil(flows / widest)} addresses of this machine`,
    },
  ];
}

/** A listener's port that the kernel hands out may be somebody's when the proxy starts again. */
function checkReserved(patient: Patient, first: number, last: number): Finding[] {
  const reserved = patient.machine.read('/proc/sys/net/ipv4/ip_local_reserved_ports') ?? '';
  const taken = listenersOf(patient)
    .map(({ address: { port } }) => port)
    .filter((port) => port >= first && port <= last && !isReserved(port, reserved));
  if (taken.length === 0) return [];
  const list = [reserved.trim(), ...new Set(taken)].filter((part) => part !== '').join(',');
  return [
    {
      severity: 'warning',
      check: 'ports',
      what: `listeners on ${[...new Set(taken)].join(', ')} are among the ports that the kernel hands out (${first} to ${last})`,
      why: 'whoever was given one keeps the listener from opening (EADDRINUSE)',
      fix: `sysctl -w net.ipv4.ip_local_reserved_ports=${list}`,
    },
  ];
}

function isReserved(port: number, list: string): boolean {
  return list.split(',').some((part) => {
    const [first, last = first] = part.trim().split('-').map(Number);
    return first !== undefined && last !== undefined && port >= first && port <= last;
  });
}

/** What listeners ask of the kernel for datagrams that wait. */
export function checkBuffers(patient: Patient): Finding[] {
  const listeners = listenersOf(patient);
  const wish = (key: 'receiveBuffer' | 'sendBuffer'): number =>
    Math.max(
      ...listeners.map((one) => one[key] ?? LIMITS.socketBuffer),
      listeners.length === 0 ? LIMITS.socketBuffer : 0,
    );
  return [
    ...checkBuffer(patient.machine, 'rmem_max', 'rcvbuf', wish('receiveBuffer')),
    ...checkBuffer(patient.machine, 'wmem_max', 'sndbuf', wish('sendBuffer')),
  ];
}

function checkBuffer(machine: Machine, name: string, key: string, wish: number): Finding[] {
  const granted = numberIn(machine, `/proc/sys/net/core/${name}`);
  if (granted === undefined || granted >= wish) return [];
  return [
    {
      severity: 'warning',
      check: 'buffers',
      what: `${key} asks for ${wish} bytes, and the kernel grants ${granted} (net.core.${name})`,
      why: 'what comes in a burst and does not fit is lost before the process sees it',
      fix: `sysctl -w net.core.${name}=${wish}`,
    },
  ];
}

/** Connection tracking holds each flow twice, towards the client and towards the backend. */
export function checkConntrack(patient: Patient): Finding[] {
  const { machine, flows } = patient;
  const most = numberIn(machine, '/proc/sys/net/netfilter/nf_conntrack_max');
  if (most === undefined) return [];
  const now = numberIn(machine, '/proc/sys/net/netfilter/nf_conntrack_count') ?? 0;
  const isFull = now + 2 * flows > most;
  const found = `conntrack is loaded: ${now} of ${most} entries are taken`;
  return [
    {
      severity: isFull ? 'warning' : 'notice',
      check: 'conntrack',
      what: isFull ? `${found}, and ${flows} flows need ${2 * flows}` : found,
      why: isFull
        ? 'when the table is full, the kernel drops datagrams of new flows'
        : 'each flow costs two entries and two look-ups for each datagram',
      fix: notrack(patient),
    },
  ];
}

/** Rules of nftables that leave our datagrams alone: those of clients by listener port, those of backends by theirs. */
function notrack(patient: Patient): string {
  const { config } = patient;
  const ports = (list: readonly number[]): string => [...new Set(list)].join(', ');
  const ours = ports(listenersOf(patient).map(({ address }) => address.port));
  const theirs = ports(
    config?.clusters.flatMap(({ backends }) => backends.map(({ address }) => address.port)) ?? [],
  );
  const rules = (own: string, their: string): string =>
    [
      ours === '' ? '' : `udp ${own} { ${ours} } notrack;`,
      theirs === '' ? '' : `udp ${their} { ${theirs} } notrack;`,
    ].join(' ');
  if (ours === '') return 'sozu-udp doctor --config FILE   # tells the rules for its ports';
  return (
    `nft 'table inet sozu_udp { ` +
    `chain in { type filter hook prerouting priority raw; ${rules('dport', 'sport')} } ` +
    `chain out { type filter hook output priority raw; ${rules('sport', 'dport')} } }'` +
    '   # unless NAT rules need them'
  );
}
