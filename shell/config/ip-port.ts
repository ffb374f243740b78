/** An address and a port in a configuration file, and what is wrong with a text that is neither. */
import * as z from 'zod';
import { parseAddress, parseIp, type Address } from '../../core/address.ts';

/** Port 0 is refused unless any port will do: nobody could know where to send to. */
export function ipPort(
  ports: 'known port' | 'any port' = 'known port',
): z.ZodType<Address, string> {
  return z.string().transform((text, context): Address => {
    const address = parseAddress(text);
    if (address !== undefined && (address.port !== 0 || ports === 'any port')) return address;
    context.addIssue({ code: 'custom', ...explainAddress(text) });
    return z.NEVER;
  });
}

function explainAddress(text: string): { message: string; params: { fix: string } } {
  const shown = JSON.stringify(text.slice(0, 80));
  const [, host = '', port = ''] = /^(.*):([^:]*)$/s.exec(text) ?? [];
  if (/^[0-9]+$/.test(port) && (Number(port) === 0 || Number(port) > 65_535)) {
    return {
      message: `port ${port} in ${shown} is out of range`,
      params: { fix: 'use 1 to 65535' },
    };
  }
  const zone = zoneOf(host);
  if (zone !== undefined) {
    return {
      message: `the zone ${JSON.stringify(zone.name)} in ${shown} is not a number`,
      params: { fix: `write the index that \`ip link\` shows: [${zone.ip}%2]:${port}` },
    };
  }
  if (/^[A-Za-z0-9.-]*[A-Za-z][A-Za-z0-9.-]*$/.test(port === '' ? text : host)) {
    return {
      message: `${shown} is a host name, and names are not looked up`,
      params: { fix: 'write its IP address and port, such as 10.0.0.10:53' },
    };
  }
  return {
    message: `${shown} is not an address and a port`,
    params: { fix: 'write ip:port, such as 10.0.0.10:53 or [2001:db8::1]:53' },
  };
}

/** What stands before and after the `%` of an IPv6 address in brackets. */
function zoneOf(host: string): { readonly ip: string; readonly name: string } | undefined {
  const [, ip = '', name = ''] = /^\[([^%]*)%(.{1,40})/s.exec(host.replace(/\]$/, '')) ?? [];
  return name !== '' && parseIp(ip, 0)?.family === 6 ? { ip, name } : undefined;
}
