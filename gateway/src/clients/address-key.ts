// The text under which the gateway counts what a client address holds. Pure.

/**
 * Returns the key of an address: an IPv4 address, also of an IPv4-mapped one, or the /64 network of an IPv6 address, because
 * one client has all addresses of such a network.
 * @param address as a socket or a proxy reports it
 */
export function addressKey(address: string): string {
  if (!address.includes(':')) return address
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return mapped
  const [front = '', back] = address.replace(/%.*$/, '').toLowerCase().split('::')
  const groups = front === '' ? [] : front.split(':')
  const last = back === undefined || back === '' ? [] : back.split(':')
  while (groups.length + last.length < 8) groups.push('0')
  const network = [...groups, ...last].slice(0, 4).map((group) => group.replace(/^0+(?=.)/, ''))
  return `${network.join(':')}::/64`
}
