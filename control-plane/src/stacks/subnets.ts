// IPv4 subnets of a region's range: the first /24 is the region's own, the rest is cut into subnets for tenants. Pure.

/** Prefix of the tenants' subnets on one host. */
const tenantPrefix = 28
/**
 * Prefix of the tenants' subnets across hosts: each host takes an address of each network that it has a part of, and each
 * gateway has one.
 */
const spanningPrefix = 26
const regionPrefix = 24

interface Addresses {
  /** First address as a number. */
  first: number
  prefix: number
}

/** A region's range of IPv4 addresses. */
export interface Range extends Addresses {
  /** Prefix of the tenants' subnets. */
  tenantPrefix: number
}

/**
 * Parses a region's range of networks, a CIDR of at least a /23.
 * @param spansHosts whether the region has several hosts
 * @throws RangeError that states the violation
 */
export function parseRange(cidr: string, spansHosts = false): Range {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(cidr)
  const octets = match?.slice(1, 5).map(Number) ?? []
  const prefix = Number(match?.[5])
  if (match === null || octets.some((octet) => octet > 255) || prefix > 32)
    throw new RangeError(`Invalid IPv4 range "${cidr}". Allowed: a CIDR such as 10.201.0.0/16.`)
  if (prefix >= regionPrefix)
    throw new RangeError(
      `The IPv4 range "${cidr}" is too small. Allowed: at least a /23, for the region's own /24 and the tenants' subnets.`,
    )
  const first = octets.reduce((sum, octet) => sum * 256 + octet, 0)
  if (first % 2 ** (32 - prefix) !== 0)
    throw new RangeError(`The IPv4 range "${cidr}" does not begin at a multiple of its size.`)
  return { first, prefix, tenantPrefix: spansHosts ? spanningPrefix : tenantPrefix }
}

/** Whether two ranges have an address in common. */
export function overlaps(one: Addresses, other: Addresses): boolean {
  const end = ({ first, prefix }: Addresses) => first + 2 ** (32 - prefix)
  return one.first < end(other) && other.first < end(one)
}

/** Returns the number of tenants' subnets in a range. */
export function subnetCount({ prefix, tenantPrefix: size }: Range): number {
  return (2 ** (32 - prefix) - 2 ** (32 - regionPrefix)) / 2 ** (32 - size)
}

/** Returns the tenants' subnet of an index from 0. */
export function tenantSubnet(range: Range, index: number): string {
  const { first, tenantPrefix: size } = range
  return `${dotted(first + 2 ** (32 - regionPrefix) + index * 2 ** (32 - size))}/${size}`
}

/** Returns the address of a position in a tenant's subnet. */
export function hostInSubnet(subnet: string, position: number): string {
  const octets = subnet
    .replace(/\/\d+$/, '')
    .split('.')
    .map(Number)
  return dotted(octets.reduce((sum, octet) => sum * 256 + octet, 0) + position)
}

/** Returns the index of a tenants' subnet; undefined for any other subnet. */
export function subnetNumber(range: Range, subnet: string): number | undefined {
  const octets = subnet
    .replace(/\/\d+$/, '')
    .split('.')
    .map(Number)
  const first = octets.reduce((sum, octet) => sum * 256 + octet, 0)
  const number = (first - range.first - 2 ** (32 - regionPrefix)) / 2 ** (32 - range.tenantPrefix)
  return Number.isInteger(number) && number >= 0 && number < subnetCount(range) ? number : undefined
}

/**
 * Returns the halves of the region's own /24: the network of its parts, and the one on which the gateway is published. The second
 * quarter of each has the addresses that no part requests.
 */
export function regionSubnets(range: Range): Record<'net' | 'assigned' | 'proxy' | 'proxyAssigned', string> {
  return {
    net: `${dotted(range.first)}/25`,
    assigned: `${dotted(range.first + 64)}/26`,
    proxy: `${dotted(range.first + 128)}/25`,
    proxyAssigned: `${dotted(range.first + 192)}/26`,
  }
}

/** Returns the address `.last` of the region's own subnet. */
export function regionAddress(range: Range, last: number): string {
  return dotted(range.first + last)
}

function dotted(address: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.')
}
