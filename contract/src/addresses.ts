// Checks the addresses to which a foreign host name may resolve: public ones, and those in networks that the operator
// allows. Pure.
import { BlockList, isIP } from 'node:net'

/** IPv4 networks outside the public internet (IANA's registries of special purposes), or that lead outside it. */
const special4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // A public address of a cloud's metadata service.
  '168.63.129.16/32',
]
/**
 * IPv6 networks that are assigned. Mapped, translated (64:ff9b::), local, link-local and multicast addresses are
 * outside.
 */
const global6 = ['2000::/3']
/** IPv6 networks within those that are not public: Teredo and other protocols, documentation, 6to4. */
const special6 = ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20']

/** A set of IPv4 and IPv6 networks against which an address can be checked; created by `readNetworks`. */
export type Networks = BlockList

/**
 * Reads a list of networks.
 * @param texts networks such as `10.1.0.0/16` or `fd00::/8`, or addresses
 * @throws Error that names the invalid one
 */
export function readNetworks(texts: readonly string[]): Networks {
  const networks = new BlockList()
  for (const text of texts) {
    const [address = '', bits, ...more] = text.split('/')
    const version = isIP(address)
    const max = version === 4 ? 32 : 128
    const length = bits === undefined ? max : Number(bits)
    if (version === 0 || more.length > 0 || !/^\d{1,3}$/.test(bits ?? '0') || length > max)
      throw new Error(
        `Invalid network ${JSON.stringify(text.slice(0, 100))}. Allowed: networks such as 10.1.0.0/16 or fd00::/8.`,
      )
    networks.addSubnet(address, length, version === 4 ? 'ipv4' : 'ipv6')
  }
  return networks
}

/** Whether a list of networks contains an address, also an IPv4-mapped one; false for an invalid address. */
export function hasAddress(networks: Networks, address: string): boolean {
  const version = isIP(address)
  if (version === 0 || address.includes('%')) return false
  return networks.check(address, version === 4 ? 'ipv4' : 'ipv6')
}

const ofSpecial4 = readNetworks(special4)
const ofGlobal6 = readNetworks(global6)
const ofSpecial6 = readNetworks(special6)

/** Whether a connection to an address is allowed; false for an invalid address. */
export function isReachable(address: string, alsoReachable: Networks): boolean {
  switch (isIP(address)) {
    case 4:
      return !ofSpecial4.check(address, 'ipv4') || alsoReachable.check(address, 'ipv4')
    case 6:
      // Only link-local addresses have an interface's name.
      if (address.includes('%')) return false
      return (
        (ofGlobal6.check(address, 'ipv6') && !ofSpecial6.check(address, 'ipv6')) || alsoReachable.check(address, 'ipv6')
      )
    default:
      return false
  }
}
