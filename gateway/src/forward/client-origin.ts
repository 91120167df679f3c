// Finds out where a request comes from: its connection's address, or the one that a trusted proxy reports. Pure.
import { isIP } from 'node:net'
import { ipv4Number, isWithin, type Ipv4Range } from '../tenants/ipv4-range.ts'
import { isHost, type RequestHead } from './request-head.ts'

interface ClientOrigin {
  address: string
  proto: 'http' | 'https'
  /** The Host header as the client sent it. */
  host: string
}

/**
 * Returns the origin of a request.
 * @param peer the address at the other end of the connection
 */
export function clientOrigin(
  peer: string,
  head: Pick<RequestHead, 'host' | 'forwarded'>,
  trusted: readonly Ipv4Range[],
): ClientOrigin {
  const { host, forwarded } = head
  const own: ClientOrigin = { address: plain(peer), proto: 'http', host }
  if (!isTrusted(peer, trusted)) return own
  // Each proxy appends to the right, and so does the trusted one.
  const proto = forwarded.proto.split(',').at(-1)?.trim()
  const through = forwarded.host.split(',').at(-1)?.trim() ?? ''
  return {
    address: clientAddress(own.address, forwarded.for, trusted),
    proto: proto === 'https' ? 'https' : 'http',
    host: isHost(through) ? through : host,
  }
}

/** Returns the right-most address that is not a trusted proxy's. Any client can forge the entries further left. */
function clientAddress(peer: string, list: string, trusted: readonly Ipv4Range[]): string {
  let nearest = peer
  for (const entry of list.split(',').toReversed()) {
    const address = entry.trim()
    if (isIP(address) === 0) break
    nearest = plain(address)
    if (!isTrusted(address, trusted)) break
  }
  return nearest
}

/** Whether an address belongs to a trusted proxy. */
export function isTrusted(address: string, trusted: readonly Ipv4Range[]): boolean {
  const number = trusted.length === 0 ? undefined : ipv4Number(address)
  return number !== undefined && trusted.some((range) => isWithin(range, number))
}

/** Returns the IPv4 address of an IPv4-mapped IPv6 address, and any other address unchanged. */
function plain(address: string): string {
  return /^::ffff:\d+\.\d+\.\d+\.\d+$/i.test(address) ? address.slice('::ffff:'.length) : address
}
