// Reads the addresses of the API, and finds those that an operator should not block by mistake. Pure.
import { networkText, overlaps, prefixOf, readNetwork, type Network } from '@tenantry/contract'
import { ControlError } from '../platform/errors.ts'

const loopback = ['127.0.0.0/8', '::1'].map((text) => readNetwork(text)).filter((network) => network !== undefined)

/** Minimum lengths of prefixes that need no confirmation: a larger network is a mistake, or blocks a part of the world. */
const minBits4 = 8
const minBits6 = 16

/** @throws ControlError INVALID_PARAMETER */
export function readAddress(text: string, parameter: string): Network {
  const network = readNetwork(text)
  if (network !== undefined) return network
  throw new ControlError(
    'INVALID_PARAMETER',
    `Invalid ${parameter} "${text.slice(0, 100)}". ` +
      'Allowed: an IPv4 or IPv6 address such as 203.0.113.7, or a network such as 203.0.113.0/24 or 2001:db8::/48.',
  )
}

/**
 * Rejects a network that contains loopback addresses or a great part of all addresses.
 * @throws ControlError CONFIRMATION_REQUIRED
 */
export function checkExtent(network: Network): void {
  const minBits = network.digits.length === 8 ? minBits4 : minBits6
  let problem: string | undefined
  if (network.bits === 0) problem = `it contains all ${network.digits.length === 8 ? 'IPv4' : 'IPv6'} addresses`
  else if (loopback.some((other) => overlaps(network, other))) problem = 'it contains loopback addresses'
  else if (network.bits < minBits) problem = `its prefix is shorter than ${minBits} bits`
  if (problem === undefined) return
  throw new ControlError(
    'CONFIRMATION_REQUIRED',
    `To block ${networkText(network)}, "confirmed" must be true, because ${problem}.`,
  )
}

/** Returns the texts of all networks that contain an address or network, that itself included. */
export function networksAround({ digits, bits }: Network): string[] {
  return Array.from({ length: bits + 1 }, (_, length) =>
    networkText({ digits: prefixOf(digits, length).padEnd(digits.length, '0'), bits: length }),
  )
}
