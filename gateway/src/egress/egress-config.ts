// Reads the settings of the egress proxy.
import { type Environment, type gatewaySettings } from '@tenantry/contract'
import { readDestination, type Destination } from './connect-request.ts'
import type { EgressRules } from './destinations.ts'

/** The egress proxy of a gateway: its port and its rules. */
export interface EgressConfig {
  readonly port: number
  readonly rules: EgressRules
}

/** Networks of the gateway's own container, which no setting opens. */
const ownNetworks = ['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16', '::/127', 'fe80::/10']

/** Reads `host:port`s, separated by commas. @returns undefined when one of them is invalid */
export function readEgressHosts(text: string): Destination[] | undefined {
  const hosts = text.split(',').map((host) => readDestination(host.trim()))
  return hosts.includes(undefined) ? undefined : hosts.filter((host) => host !== undefined)
}

/** Reads the settings. @returns nothing without a port @throws ConfigurationError for an invalid network */
export function readEgress(environment: Environment<keyof typeof gatewaySettings>): { egress?: EgressConfig } {
  const reachable = environment.networks('TENANTRY_EGRESS_MAY_REACH')
  const forbidden = environment.networks('TENANTRY_EGRESS_FORBIDDEN')
  const port = environment.optional('TENANTRY_EGRESS_PORT')
  if (port === undefined) return {}
  const tenantRange = environment.optional('TENANTRY_TENANT_RANGE')
  for (const network of [...ownNetworks, ...(tenantRange === undefined ? [] : [tenantRange])]) {
    const [address = '', bits = ''] = network.split('/')
    forbidden.addSubnet(address, Number(bits), address.includes(':') ? 'ipv6' : 'ipv4')
  }
  return {
    egress: {
      port: Number(port),
      rules: {
        storage: readEgressHosts(environment.optional('TENANTRY_EGRESS_STORAGE') ?? '') ?? [],
        reachable,
        forbidden,
      },
    },
  }
}
