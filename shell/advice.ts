/** What an operator can do about a listener that did not open. */

/** A hint in brackets, with a space before it; empty for errors that speak for themselves. */
export function advice(errno: string): string {
  switch (errno) {
    case 'EADDRINUSE':
      return ' (another program has this port: `ss -ulpn` names it)';
    case 'EACCES':
      return ' (ports below 1024 need CAP_NET_BIND_SERVICE)';
    case 'EADDRNOTAVAIL':
      return ' (this machine has no such address: `ip address` lists them)';
    case 'EMFILE':
      return ' (raise the descriptor limit: `ulimit -n`)';
    default:
      return '';
  }
}
