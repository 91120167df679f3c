// Where a request comes from: what its connection shows, or, from a proxy that the operator trusts, what that proxy says. Pure.
import { isIP } from 'node:net'
import { ipv4Number, isWithin, type Ipv4Range } from '../tenants/ipv4-range.ts'
import { isHost, type RequestHead } from './request-head.ts'

interface ClientOrigin {
  address: string
  proto: 'http' | 'https'
  /** The Host header as the client sent it. */
  host: string
}

/** @param peer address at the other end of the connection */
export function clientOrigin(
  peer: string,
  head: Pick<RequestHead, 'host' | 'forwarded'>,
  trusted: readonly Ipv4Range[],
): ClientOrigin {
  const { host, forwarded } = head
  const own: ClientOrigin = { address: plain(peer), proto: 'http', host }
  if (!isTrusted(peer, trusted)) return own
  // Each proxy adds to the right; so does the one whose word is taken.
  const proto = forwarded.proto.split(',').at(-1)?.trim()
  const through = forwarded.host.split(',').at(-1)?.trim() ?? ''
  return {
    address: clientAddress(own.address, forwarded.for, trusted),
    proto: proto === 'https' ? 'https' : 'http',
    host: isHost(through) ? through : host,
  }
}

/** The right-most address that is no trusted proxy's; what stands further left is the word of whoever has it. */
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

function isTrusted(address: string, trusted: readonly Ipv4Range[]): boolean {
  const number = trusted.length === 0 ? undefined : ipv4Number(address)
  return number !== undefined && trusted.some((range) => isWithin(range, number))
}

/** IPv4 as such, however it is carried. */
function plain(address: string): string {
  return /^::ffff:\d+\.\d+\.\d+\.\d+$/i.test(address) ? address.slice('::ffff:'.length) : address
}
