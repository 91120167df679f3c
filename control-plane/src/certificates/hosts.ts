// The host names and addresses at which SQL clients reach a gateway. Pure.
import { isIP } from 'node:net'
import type { RegionConfig } from '../regions/index.ts'

/** The part of a region on which the certificate of its gateway depends. */
export type HostsOfRegion = Pick<RegionConfig, 'domain' | 'gateway_url' | 'database_host'>

/** Clients on the gateway's own machine use these, as with `npm start`. */
const ownMachine = ['localhost', '127.0.0.1', '::1']

const hostName = /^(?:\*\.)?(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/

/**
 * Returns the names and addresses for the certificate of the gateway that serves a domain: those of all regions with that
 * domain, and those of the gateway's own machine.
 */
export function certificateHosts(domain: string, regions: readonly HostsOfRegion[]): string[] {
  const served = regions.filter((region) => region.domain.toLowerCase() === domain.toLowerCase())
  const named = served.flatMap((region) => [
    region.domain,
    `*.${region.domain}`,
    new URL(region.gateway_url).hostname,
    region.database_host.slice(0, region.database_host.lastIndexOf(':')),
  ])
  const hosts = named.map((host) => host.toLowerCase().replace(/^\[|\]$/g, '')).filter(isHost)
  return [...new Set([...hosts, ...ownMachine])]
}

function isHost(host: string): boolean {
  return isIP(host) !== 0 || (host.length <= 253 && hostName.test(host))
}
