/**
 * Opening listeners, and trying again: an address may come later (a DHCP lease, a floating address, an interface that is not
 * up), and whoever has `bind_retry` waits for it. Told is the first failure and then the success, however many tries it takes.
 */
import type { ListenerConfig } from './config.ts';
import { LIMITS } from './config.ts';
import type { Report } from './directives.ts';
import type { Listener } from './plane-listener.ts';
import type { PlaneOutput } from './plane-contract.ts';
import type { Errno } from './ports.ts';
import { after, seconds, type Duration, type Instant } from './time.ts';

/** How far a listener is with its socket. */
export interface Binding {
  /** When to try again; undefined when it is open, or failed for good. */
  retryAt: Instant | undefined;
  /** Whether a failure was told. */
  told: boolean;
  /** It was open, and its socket was given up. */
  givenUp: boolean;
}

/** What time can cure: the address comes, or another program leaves the port. */
const CURABLE: ReadonlySet<Errno> = new Set(['EADDRNOTAVAIL', 'EADDRINUSE']);

/** Who was open before has flows and clients, so that any failure is worth another try, `bind_retry` or not. */
const REOPEN_RETRY: Duration = seconds(1);

export function openListener({ id, config }: Pick<Listener, 'id' | 'config'>): PlaneOutput {
  const { address, ipv6Only, receiveBuffer, sendBuffer } = config;
  return {
    kind: 'OpenListener',
    listener: id,
    address,
    socket: {
      ipv6Only,
      receiveBuffer: receiveBuffer ?? LIMITS.socketBuffer,
      sendBuffer: sendBuffer ?? LIMITS.socketBuffer,
    },
  };
}

/** The answer to an open: plans the next try, if one can help, and returns what is to be told. */
export function listenerAnswered(
  { id, config, generation, binding }: Listener,
  errno: Errno | undefined,
  now: Instant,
): Report | undefined {
  const about = { generation, listener: id, address: config.address };
  const retry = errno === undefined ? undefined : retryOf({ config, binding }, errno);
  const told = binding.told;
  if (errno === undefined) binding.givenUp = false;
  binding.retryAt = retry === undefined ? undefined : after(now, retry);
  binding.told = errno !== undefined;
  if (errno === undefined) return { kind: 'ListenerOpened', ...about };
  return told && retry !== undefined
    ? undefined
    : { kind: 'ListenerFailed', ...about, errno, retry };
}

/** The next try, if it is due. */
export function retryListener(listener: Listener, now: Instant): PlaneOutput | undefined {
  const { binding } = listener;
  if (binding.retryAt === undefined || binding.retryAt > now) return undefined;
  binding.retryAt = undefined;
  return openListener(listener);
}

function retryOf(
  { config: { bindRetry }, binding: { givenUp } }: Pick<Listener, 'config' | 'binding'>,
  errno: Errno,
): ListenerConfig['bindRetry'] {
  if (givenUp) return bindRetry ?? REOPEN_RETRY;
  return CURABLE.has(errno) ? bindRetry : undefined;
}
