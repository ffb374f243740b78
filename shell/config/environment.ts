/**
 * What a configuration is judged against besides itself: limits and addresses of this machine. Plain data, so that a
 * test, or a check on another machine, supplies its own.
 */
import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';

export interface Environment {
  /** Soft limit of open descriptors; undefined when it cannot be read. */
  readonly descriptorLimit?: number | undefined;
  /** IP addresses of this machine's interfaces, without ports. */
  readonly localAddresses?: readonly string[] | undefined;
  /** How many ephemeral ports the kernel hands out. */
  readonly ephemeralPorts?: number | undefined;
}

/** This machine, as far as it tells. Never throws. */
export function readEnvironment(): Environment {
  return {
    descriptorLimit: firstNumber('/proc/self/limits', /^Max open files\s+(\d+)/m),
    localAddresses: interfaceAddresses(),
    ephemeralPorts: ephemeralPorts(),
  };
}

/** IP addresses of this machine's interfaces; undefined when it has no descriptor left to ask with. */
export function interfaceAddresses(): readonly string[] | undefined {
  try {
    const addresses = Object.values(networkInterfaces()).flatMap((interfaces) => interfaces ?? []);
    return addresses.map(({ address }) => address.replace(/%.*$/, ''));
  } catch {
    return undefined;
  }
}

function ephemeralPorts(): number | undefined {
  const file = '/proc/sys/net/ipv4/ip_local_port_range';
  const first = firstNumber(file, /^(\d+)/);
  const last = firstNumber(file, /(\d+)\s*$/);
  return first === undefined || last === undefined ? undefined : last - first + 1;
}

function firstNumber(file: string, pattern: RegExp): number | undefined {
  try {
    const found = pattern.exec(readFileSync(file, 'utf8'))?.[1];
    return found === undefined ? undefined : Number(found);
  } catch {
    return undefined;
  }
}
