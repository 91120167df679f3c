// IPv4 subnets of a region's range: the first /24 is the region's own, the rest is cut into /28 for tenants. Pure.

const tenantPrefix = 28
const regionPrefix = 24

/** A range of IPv4 addresses. */
export interface Range {
  /** First address as a number. */
  first: number
  prefix: number
}

/** Parses a region's range of networks, a CIDR of at least a /23. @throws RangeError that states the violation */
export function parseRange(cidr: string): Range {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(cidr)
  const octets = match?.slice(1, 5).map(Number) ?? []
  const prefix = Number(match?.[5])
  if (match === null || octets.some((octet) => octet > 255) || prefix > 32)
    throw new RangeError(`Invalid IPv4 range "${cidr}". Allowed: a CIDR such as 10.201.0.0/16.`)
  if (prefix >= regionPrefix)
    throw new RangeError(
      `The IPv4 range "${cidr}" is too small. Allowed: at least a /23, for the region's own /24 and the tenants' /28s.`,
    )
  const first = octets.reduce((sum, octet) => sum * 256 + octet, 0)
  if (first % 2 ** (32 - prefix) !== 0)
    throw new RangeError(`The IPv4 range "${cidr}" does not begin at a multiple of its size.`)
  return { first, prefix }
}

/** Whether two ranges have an address in common. */
export function overlaps(one: Range, other: Range): boolean {
  const end = ({ first, prefix }: Range) => first + 2 ** (32 - prefix)
  return one.first < end(other) && other.first < end(one)
}

/** Returns the number of tenants' subnets in a range. */
export function subnetCount({ prefix }: Range): number {
  return (2 ** (32 - prefix) - 2 ** (32 - regionPrefix)) / 2 ** (32 - tenantPrefix)
}

/** Returns the tenants' subnet of an index from 0. */
export function tenantSubnet(range: Range, index: number): string {
  return `${dotted(range.first + 2 ** (32 - regionPrefix) + index * 2 ** (32 - tenantPrefix))}/${tenantPrefix}`
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
  const number = (first - range.first - 2 ** (32 - regionPrefix)) / 2 ** (32 - tenantPrefix)
  return Number.isInteger(number) && number >= 0 && number < subnetCount(range) ? number : undefined
}

/**
 * Returns the halves of the region's own /24: the network of its parts, and the one on which the gateway is published.
 */
export function regionSubnets(range: Range): { net: string; proxy: string } {
  return { net: `${dotted(range.first)}/25`, proxy: `${dotted(range.first + 128)}/25` }
}

/** Returns the address `.last` of the region's own subnet. */
export function regionAddress(range: Range, last: number): string {
  return dotted(range.first + last)
}

function dotted(address: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.')
}
