// IPv4 and IPv6 networks and addresses in one canonical form, in which a network is a prefix of digits. Pure.
import { isIP } from 'node:net'

/** A network, or a single address as the network of that length. */
export interface Network {
  /** Hexadecimal digits of its first address: 8 of IPv4, 32 of IPv6. An IPv4-mapped address is IPv4. */
  readonly digits: string
  /** Length of the prefix in bits. */
  readonly bits: number
}

/** Digits before the IPv4 address in an IPv4-mapped IPv6 address (`::ffff:192.0.2.1`). */
const mapped = `${'0'.repeat(20)}ffff`

/**
 * Reads a network such as `203.0.113.0/24` or `2001:db8::/48`, or an address. The bits behind the prefix may be set, and
 * become zero.
 * @returns undefined if the text is neither
 */
export function readNetwork(text: string): Network | undefined {
  const [address = '', length, ...more] = text.split('/')
  const digits = address.includes('%') ? undefined : addressDigits(address)
  if (digits === undefined || more.length > 0) return undefined
  if (length === undefined) return { digits, bits: digits.length * 4 }
  if (!/^(?:0|[1-9]\d{0,2})$/.test(length)) return undefined
  // The length of an IPv4-mapped prefix includes the part before the IPv4 address.
  const bits = Number(length) - (digits.length === 8 && address.includes(':') ? mapped.length * 4 : 0)
  if (bits < 0 || bits > digits.length * 4) return undefined
  return { digits: prefixOf(digits, bits).padEnd(digits.length, '0'), bits }
}

/** Returns the canonical text of a network, without a length for a single address. */
export function networkText({ digits, bits }: Network): string {
  const address = digits.length === 8 ? ipv4Text(digits) : ipv6Text(digits)
  return bits === digits.length * 4 ? address : `${address}/${bits}`
}

/**
 * Returns the hexadecimal digits of an address: 8 of IPv4 or an IPv4-mapped one, 32 of IPv6. The name of an interface
 * (`%eth0`) is ignored.
 * @returns undefined if the text is not an address
 */
export function addressDigits(address: string): string | undefined {
  switch (isIP(address)) {
    case 4:
      return ipv4Digits(address)
    case 6: {
      const digits = ipv6Digits(address)
      return digits.startsWith(mapped) ? digits.slice(mapped.length) : digits
    }
    default:
      return undefined
  }
}

/** Returns the first digits of an address, with the bits behind the prefix as zeros in the last one. */
export function prefixOf(digits: string, bits: number): string {
  const whole = bits >> 2
  const rest = bits & 3
  if (rest === 0) return digits.slice(0, whole)
  const last = Number.parseInt(digits.charAt(whole), 16) & (0xf0 >> rest)
  return digits.slice(0, whole) + (last & 0xf).toString(16)
}

/** Whether two networks have an address in common. */
export function overlaps(one: Network, other: Network): boolean {
  const bits = Math.min(one.bits, other.bits)
  return one.digits.length === other.digits.length && prefixOf(one.digits, bits) === prefixOf(other.digits, bits)
}

function ipv4Digits(address: string): string {
  let digits = ''
  for (const octet of address.split('.')) digits += Number(octet).toString(16).padStart(2, '0')
  return digits
}

function ipv6Digits(address: string): string {
  const [front = '', back] = address.replace(/%.*$/, '').split('::')
  const first = groups(front)
  const last = back === undefined ? '' : groups(back)
  return (first + '0'.repeat(32 - first.length - last.length) + last).toLowerCase()
}

/** Returns the digits of a part of an IPv6 address, which may end with an IPv4 address. */
function groups(part: string): string {
  if (part === '') return ''
  let digits = ''
  for (const group of part.split(':')) digits += group.includes('.') ? ipv4Digits(group) : group.padStart(4, '0')
  return digits
}

function ipv4Text(digits: string): string {
  return [0, 2, 4, 6].map((at) => Number.parseInt(digits.slice(at, at + 2), 16)).join('.')
}

function ipv6Text(digits: string): string {
  const text = (digits.match(/.{4}/g) ?? []).join(':')
  // The parser of URLs shortens addresses as RFC 5952 defines it.
  return new URL(`http://[${text}]`).hostname.slice(1, -1)
}
