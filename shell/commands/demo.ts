/** `npm start`: a proxy to try, with two echo backends in the same process that answer with their names. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import {
  ipv4,
  LIMITS,
  listenerId,
  CLUSTER_DEFAULTS,
  NO_CLUSTER,
  seconds,
  type Address,
  type Config,
} from '../../core/index.ts';
import { createLog } from '../log.ts';
import { runConfig } from './run.ts';

const LOOPBACK = 0x7f000001;
const NAMES = ['alpha', 'beta'] as const;

/** Runs until a signal; the exit code is that of `run`. */
export async function runDemo(port = 5_300): Promise<number> {
  const backends = await Promise.all(NAMES.map((name) => echoBackend(name)));
  const config = demoConfig(
    ipv4(LOOPBACK, port),
    backends.map((backend) => backend.address().port),
  );
  const code = await runConfig({ config, log: createLog('warn') }, (proxy) => {
    const at = proxy.portOf(listenerId(0)) ?? port;
    process.stdout.write(
      `sozu-udp demo: 127.0.0.1:${at} leads to two echo backends, ${NAMES.join(' and ')}.\n` +
        `Try it from another terminal, a few times:\n  ${trial(at)}\n` +
        'Ctrl-C stops it.\n',
    );
  });
  for (const backend of backends) backend.close();
  return code;
}

/** A command that needs nothing but Node. */
function trial(port: number): string {
  return (
    `node -e "const s=require('dgram').createSocket('udp4');` +
    `s.on('message',m=>{console.log(String(m));s.close()});s.send('hello',${port},'127.0.0.1')"`
  );
}

async function echoBackend(name: string): Promise<Socket> {
  const socket = createSocket('udp4');
  socket.on('message', (payload, remote) => {
    socket.send([`${name}: `, payload], remote.port, remote.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return socket;
}

/** Round robin over the backends, so that each new socket meets the next one. */
function demoConfig(address: Address, backendPorts: readonly number[]): Config {
  return {
    listeners: [
      {
        address,
        frontTimeout: seconds(LIMITS.frontTimeoutSeconds),
        backTimeout: seconds(LIMITS.backTimeoutSeconds),
        maxRxDatagramSize: LIMITS.maxRxDatagramSize,
        maxFlows: 1_000,
        ipv6Only: false,
        cluster: 'demo',
      },
    ],
    clusters: [
      {
        ...NO_CLUSTER,
        ...CLUSTER_DEFAULTS,
        cluster: 'demo',
        loadBalancing: 'ROUND_ROBIN',
        loadMetric: 'CONNECTIONS',
        allowBackendAsClient: false,
        backends: backendPorts.map((port, index) => ({
          id: NAMES[index] ?? 'demo',
          address: ipv4(LOOPBACK, port),
          weight: LIMITS.backendWeight,
          backup: false,
        })),
      },
    ],
    grace: seconds(1),
  };
}
