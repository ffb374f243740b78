/** Lists of addresses in a configuration file, each entry with its own problem. */
import * as z from 'zod';
import {
  formatIp,
  isUnanswerable,
  isUnspecified,
  parseAddress,
  parseIp,
  unmap,
  type Address,
} from '../../core/address.ts';
import { parseCidr, type Cidr } from '../../core/cidr.ts';

/** Sources of one cluster at most: more than two million ports. */
const SOURCES_MAX = 64;

/** Blocks in CIDR notation; an address alone is a block of one. */
export function addressBlocks(): z.ZodType<readonly Cidr[], string[]> {
  return z.array(z.string()).transform((texts, context): readonly Cidr[] => {
    return texts.flatMap((text, index) => {
      const parsed = parseCidr(text);
      if (parsed.ok) return parsed.cidr;
      context.addIssue(problemAt(index, parsed.problem, parsed.fix));
      return [];
    });
  });
}

/** Addresses that sockets of ours can be bound to: unmapped, without a port, each once. */
export function ownAddresses(): z.ZodType<readonly Address[], string[]> {
  return z.array(z.string()).transform((texts, context): readonly Address[] => {
    if (texts.length > SOURCES_MAX) {
      const message = `${texts.length} addresses are more than ${SOURCES_MAX}`;
      context.addIssue({ code: 'custom', message, params: { fix: 'remove some' } });
    }
    const seen = new Set<string>();
    return texts.flatMap((text, index) => {
      const address = parseIp(text, 0);
      const refused = address === undefined ? explain(text) : unfit(unmap(address), seen);
      if (refused !== undefined) context.addIssue(problemAt(index, ...refused));
      return address === undefined ? [] : unmap(address);
    });
  });
}

type Refusal = readonly [message: string, fix: string];

function explain(text: string): Refusal {
  const shown = JSON.stringify(text.slice(0, 80));
  const withPort = parseAddress(text);
  if (withPort === undefined) {
    return [`${shown} is not an IP address`, 'write an address of this machine, such as 10.0.0.5'];
  }
  return [`${shown} has a port: each flow gets one of its own`, `write ${formatIp(withPort)}`];
}

/** Why no socket for backends can be bound there; `seen` learns the address. */
function unfit(address: Address, seen: Set<string>): Refusal | undefined {
  const name = formatIp(address);
  if (seen.has(name)) return [`${name} stands twice`, 'remove one'];
  seen.add(name);
  if (isUnspecified(address)) {
    return [`${name} leaves the choice to the kernel`, 'remove it, or write an address'];
  }
  // No port yet, which alone would make it unanswerable.
  if (isUnanswerable({ ...address, port: 1 })) {
    return [`${name} is multicast or broadcast`, 'write an address of this machine'];
  }
  return undefined;
}

function problemAt(
  index: number,
  message: string,
  fix: string,
): { code: 'custom'; path: number[]; message: string; params: { fix: string } } {
  return { code: 'custom', path: [index], message, params: { fix } };
}
