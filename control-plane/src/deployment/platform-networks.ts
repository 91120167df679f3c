// The networks of the platform's own, which the swarm connects across its hosts. Pure.
import type { PlatformHost, PlatformOptions } from './platform-options.ts'

/** A network, which `deploy/setup` creates. */
export interface PlatformNetwork {
  /** Name in the Compose files. */
  key: 'engines' | 'database'
  /** Name on the engines. */
  name: string
  subnet: string
  /** The addresses that no container requests. */
  assigned: string
}

const networkPrefix = 26
/** Last number of the address of the first host's Docker proxy, relative to its network. */
const firstProxy = 8

/** Returns the networks: that of the Docker proxies, and that of the control database. */
export function platformNetworks({ name, platformRange, hasControlDatabase }: PlatformOptions): PlatformNetwork[] {
  const keys = hasControlDatabase ? (['engines', 'database'] as const) : (['engines'] as const)
  return keys.map((key) => {
    const first = networkStart(platformRange.first, key)
    return {
      key,
      name: `${name}-${key}`,
      subnet: `${dotted(first)}/${networkPrefix}`,
      assigned: `${dotted(first + 2 ** (32 - networkPrefix - 1))}/${networkPrefix + 1}`,
    }
  })
}

/** Returns the range of the platform's own networks, as its option states it. */
export function platformRangeText({ platformRange }: Pick<PlatformOptions, 'platformRange'>): string {
  return `${dotted(platformRange.first)}/${platformRange.prefix}`
}

/** Returns the range of the network of the control database, as the functions of region's services take it. */
export function databaseRange({ platformRange }: Pick<PlatformOptions, 'platformRange'>) {
  return { first: networkStart(platformRange.first, 'database'), prefix: networkPrefix, tenantPrefix: networkPrefix }
}

/**
 * Returns the address of a host's Docker proxy. It is fixed, so that a control plane does not wait for a name server when the host
 * is gone.
 */
export function dockerProxyAddress(
  { platformRange, hosts }: PlatformOptions,
  { id }: Pick<PlatformHost, 'id'>,
): string {
  const number = hosts.findIndex((host) => host.id === id)
  return dotted(networkStart(platformRange.first, 'engines') + firstProxy + number)
}

function networkStart(first: number, key: PlatformNetwork['key']): number {
  return first + (key === 'engines' ? 0 : 2 ** (32 - networkPrefix))
}

function dotted(address: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.')
}
