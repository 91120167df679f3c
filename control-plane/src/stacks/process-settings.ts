// The configuration of a region whose tenants' own services run as processes of `npm start`, and their addresses. Pure.
import { Type, type Static } from 'typebox'
import { hostInSubnet } from './subnets.ts'

const Port = Type.Integer({ minimum: 1, maximum: 65_535 })

/** Settings of the host of processes, which `npm start` writes. */
export const ProcessSettings = Type.Object(
  {
    /** Unix socket of the host. */
    socket: Type.String({ minLength: 1 }),
    /** IPv4 range of loopback addresses. Each tenant has some of them, which separate nothing but ports. */
    address_range: Type.String({ pattern: '^127\\.' }),
    /** Ports on the tenants' addresses, which no other installation on the machine uses. */
    postgres_port: Port,
    runtime_port: Port,
    /** Seconds without a request after which a tenant's own services are stopped; 0 or absent for never. */
    pause_after_seconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 30 * 86_400 })),
  },
  { additionalProperties: false },
)
export type ProcessSettings = Static<typeof ProcessSettings>

/** Last numbers of a tenant's addresses in its subnet. */
const positions = { postgres: 2, runtime: 3 } as const

/** Returns the loopback address of a tenant's own service. @param subnet the tenant's, as a CIDR */
export function processAddress(subnet: string, component: keyof typeof positions): string {
  return hostInSubnet(subnet, positions[component])
}
