// Computes a tenant's stack, with one branch per isolation model. Pure.
import { tenantToken } from '@tenantry/contract'
import type { Isolation } from './isolation.ts'
import { SecretText } from './secret-text.ts'
import type { Resources, Stack } from './stack.ts'
import { nodeService, ports, postgresService } from './tenant-services.ts'

/** Limits of each component of a tenant. */
interface ComponentResources {
  postgres: Resources
  runtime: Resources
}

/** Input of a tenant's stack: the tenant and its region. */
export interface StackInput {
  id: string
  isolation: Isolation
  /** Whether services run. Suspended and paused tenants retain their data without running services. */
  running: boolean
  /** Whether the volumes hold a home and must not be created again. */
  hasHome: boolean
  resources: ComponentResources
  restarts: number
  /** Digests of the images; undefined for tenants without services. */
  images: { postgres: string; runtime: string } | undefined
  subnet: string | undefined
}

interface StackEnvironment {
  /** Name of the gateway's container. */
  gatewayContainer: string
  internalToken: string
}

/**
 * Returns a tenant's stack. A schema-per-tenant home needs no services of its own: the region's shared Postgres and
 * runtimes serve it.
 * @throws RangeError for a model without a stack, which the API rejects earlier
 */
export function stackFor(tenant: StackInput, environment: StackEnvironment): Stack {
  switch (tenant.isolation) {
    case 'schema-per-tenant':
      return { id: tenant.id, state: 'running', networks: [], volumes: [], services: [] }
    case 'database-per-tenant':
      return dedicatedStack(tenant, environment)
    case 'cluster-per-tenant':
      throw new RangeError(`No engine supports the isolation ${tenant.isolation}.`)
  }
}

/** Maximum number of sessions of a tenant's own database, for its runtime, its SQL clients and the control plane. */
const connections = 80
const reservedConnections = 54
const runtimeConnections = 40

/**
 * Returns a component's alias on the tenant's network. It contains the tenant's ID, because the gateway is on many
 * networks.
 */
export const componentAlias = (tenantId: string, component: 'postgres' | 'runtime'): string =>
  `${tenantId}-${component}`

function dedicatedStack(tenant: StackInput, { gatewayContainer, internalToken }: StackEnvironment): Stack {
  const { id, images, subnet, resources, restarts, hasHome } = tenant
  if (images === undefined || subnet === undefined)
    throw new RangeError(`The tenant ${id} has no images or no subnet yet.`)
  const attachment = (component: 'postgres' | 'runtime') => ({
    network: 'net',
    aliases: [componentAlias(id, component)],
  })
  return {
    id,
    state: tenant.running ? 'running' : 'stopped',
    networks: [
      {
        name: 'net',
        subnet,
        internal: true,
        hostAddress: false,
        attachedContainers: [{ container: gatewayContainer, alias: 'gateway' }],
      },
    ],
    volumes: [
      { name: 'data', mustExist: hasHome, isGuarded: true },
      { name: 'files', mustExist: hasHome, isGuarded: false },
    ],
    services: [
      postgresService({
        image: images.postgres,
        network: attachment('postgres'),
        resources: resources.postgres,
        connections,
        reservedConnections,
        restarts,
      }),
      nodeService({
        name: 'runtime',
        image: images.runtime,
        livePort: ports.runtime,
        networks: [attachment('runtime')],
        resources: resources.runtime,
        environment: {
          TENANTRY_PORT: String(ports.runtime),
          TENANTRY_CONTROL_URL: `http://gateway:${ports.gatewayInternal}`,
          TENANTRY_MAX_CONNECTIONS: String(runtimeConnections),
        },
        internalToken: new SecretText(tenantToken(internalToken, id)),
        volume: 'files',
        replace: 'start-first',
        restarts,
      }),
    ],
  }
}
