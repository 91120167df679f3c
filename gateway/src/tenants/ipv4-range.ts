// IPv4 ranges and addresses as numbers. Pure.

export interface Ipv4Range {
  /** The first address as a number. */
  readonly first: number
  /** The number of addresses. */
  readonly size: number
}

const dotted = /^(?:::ffff:)?(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/i

/**
 * Parses a range.
 * @param cidr for example `10.201.0.0/16`
 * @returns undefined when it is not a range, or does not begin at a multiple of its size
 */
export function parseIpv4Range(cidr: string): Ipv4Range | undefined {
  const [, address = '', bits = ''] = /^([\d.]+)\/(\d|[12]\d|3[0-2])$/.exec(cidr) ?? []
  const first = ipv4Number(address)
  const size = 2 ** (32 - Number(bits))
  return first === undefined || first % size !== 0 ? undefined : { first, size }
}

/**
 * Parses a list of ranges.
 * @param list addresses and ranges, separated by commas
 * @returns undefined when one of them is neither
 */
export function parseIpv4Ranges(list: string): Ipv4Range[] | undefined {
  const texts = list.split(',').map((text) => text.trim())
  const ranges = texts.map((text) => parseIpv4Range(text.includes('/') ? text : `${text}/32`))
  return ranges.includes(undefined) ? undefined : ranges.filter((range) => range !== undefined)
}

/**
 * Returns an address as a number.
 * @param address IPv4, or IPv4-mapped IPv6 (`::ffff:10.201.1.2`)
 * @returns undefined for any other
 */
export function ipv4Number(address: string): number | undefined {
  const match = dotted.exec(address)
  if (match === null) return undefined
  let number = 0
  for (let at = 1; at <= 4; at++) {
    const octet = match[at] ?? ''
    // Some parsers read a leading zero as octal.
    if (Number(octet) > 255 || (octet.length > 1 && octet.startsWith('0'))) return undefined
    number = number * 256 + Number(octet)
  }
  return number
}

export function isWithin({ first, size }: Ipv4Range, address: number): boolean {
  return address >= first && address < first + size
}
