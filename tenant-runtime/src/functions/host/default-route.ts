// Checks whether this machine or container has a default route. Without one, it reaches only its own networks.
import { readFile } from 'node:fs/promises'

const isUp = 0x1
const isReject = 0x200
const noAddress = '00000000'

/** Whether Linux' routing tables have a usable default route. True if they can't be read. */
export async function hasDefaultRoute(): Promise<boolean> {
  try {
    const [ipv4, ipv6] = await Promise.all([
      readFile('/proc/net/route', 'utf8'),
      readFile('/proc/net/ipv6_route', 'utf8').catch(() => ''),
    ])
    return namesDefaultRoute(ipv4, ipv6)
  } catch {
    return true
  }
}

/**
 * Whether the routing tables have a usable default route.
 * @param ipv4 the content of `/proc/net/route`
 * @param ipv6 the content of `/proc/net/ipv6_route`
 */
export function namesDefaultRoute(ipv4: string, ipv6: string): boolean {
  const rows = (table: string) => table.split('\n').map((line) => line.trim().split(/\s+/))
  const isUsable = (flags = '') => (parseInt(flags, 16) & (isUp | isReject)) === isUp
  return (
    rows(ipv4).some(
      ([, destination, , flags, , , , mask]) => destination === noAddress && mask === noAddress && isUsable(flags),
    ) ||
    rows(ipv6).some(
      ([destination, bits, , , , , , , flags]) =>
        destination === noAddress.repeat(4) && bits === '00' && isUsable(flags),
    )
  )
}
