// A set of networks with the time until which each belongs to it. To check an address takes one read of a map for each length of
// prefix in use, whatever the number of networks. Pure.
import { addressDigits, prefixOf, readNetwork } from '@tenantry/contract'

/** The ends of networks by their prefix, for one length of prefixes. */
type Prefixes = Map<string, number>

export class NetworkSet {
  /** The networks by the number of digits of their addresses, and then by the length of their prefixes in bits. */
  readonly #families = new Map<number, Map<number, Prefixes>>()

  /**
   * Adds a network, or changes its end.
   * @param until milliseconds since 1970
   */
  put(text: string, until: number): void {
    const network = readNetwork(text)
    if (network === undefined) return
    const lengths = this.#families.get(network.digits.length) ?? new Map<number, Prefixes>()
    this.#families.set(network.digits.length, lengths)
    const prefixes: Prefixes = lengths.get(network.bits) ?? new Map<string, number>()
    lengths.set(network.bits, prefixes)
    prefixes.set(prefixOf(network.digits, network.bits), until)
  }

  remove(text: string): void {
    const network = readNetwork(text)
    if (network === undefined) return
    const lengths = this.#families.get(network.digits.length)
    const prefixes = lengths?.get(network.bits)
    prefixes?.delete(prefixOf(network.digits, network.bits))
    if (prefixes?.size === 0) lengths?.delete(network.bits)
  }

  /** Whether a network whose end is not over contains the address. */
  has(address: string, now: number): boolean {
    const digits = addressDigits(address)
    const lengths = digits === undefined ? undefined : this.#families.get(digits.length)
    if (digits === undefined || lengths === undefined) return false
    for (const [bits, prefixes] of lengths) {
      const until = prefixes.get(prefixOf(digits, bits))
      if (until !== undefined && now < until) return true
    }
    return false
  }
}
