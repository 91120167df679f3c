// Reads the address of a Postgres server in a route. Pure.
import type { NetConnectOpts } from 'node:net'

/**
 * Returns where to connect to.
 * @param address `host:port`, or `directory:port` of a Unix socket, with an absolute path as in Postgres' own clients
 */
export function endpointOf(address: string): NetConnectOpts {
  const colon = address.lastIndexOf(':')
  const [host, port] = [address.slice(0, colon), address.slice(colon + 1)]
  // Postgres derives the name of its socket from the port.
  if (host.startsWith('/')) return { path: `${host}/.s.PGSQL.${port}` }
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
}
